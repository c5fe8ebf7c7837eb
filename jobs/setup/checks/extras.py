"""Which extras of ringfence are missing that this project's configuration asks for."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.extras import install_command, join_names, missing_packages
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.finding import Finding


def check_extras(settings: Settings) -> Iterator[Finding]:
    """Say what this installation can't do; nothing where all that is configured is installed."""
    if missing := missing_packages("train"):
        verb = "is" if len(missing) == 1 else "are"
        yield Finding(
            "ok",
            f"this installation scores and audits, and does not train: {join_names(missing)} "
            f"{verb} not installed",
            f"{install_command('train')}, to train here",
        )
    if settings.tracking.uri is not None and (missing := missing_packages("tracking")):
        yield Finding(
            "warning",
            f"[tracking] has a uri, but {join_names(missing)} is not installed",
            install_command("tracking"),
        )
