"""Which extras of ringfence are missing, or broken, that this project's configuration asks for."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.extras import (
    broken_packages,
    install_command,
    join_names,
    missing_packages,
    repair_command,
)
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.finding import Finding

OPTIONAL = {
    "train": ("this installation scores and audits, and does not train", "to train here"),
    "serve": ("this installation has no dashboard and no HTML report", "for ringfence serve"),
}


def check_extras(settings: Settings) -> Iterator[Finding]:
    """Say what this installation can't do; nothing where all that is configured is installed.

    A missing driver of the audit store, server or engine is said by the checks of these.
    """
    for extra, (text, purpose) in OPTIONAL.items():
        if missing := missing_packages(extra):
            yield Finding(
                "ok",
                f"{text}: {join_names(missing)} {_are(missing)} not installed",
                f"{install_command(extra)}, {purpose}",
            )
    if settings.tracking.uri is not None and (missing := missing_packages("tracking")):
        yield Finding(
            "warning",
            f"[tracking] has a uri, but {join_names(missing)} {_are(missing)} not installed",
            install_command("tracking"),
        )
    if settings.telemetry.lineage and missing_packages("openlineage"):
        yield Finding(
            "warning",
            "[telemetry] lineage is set, but openlineage-python is not installed",
            install_command("openlineage"),
        )
    for broken in broken_packages(_used_extras(settings)):
        yield Finding(
            "error",
            f"{broken.package} is installed, but can't be imported ({broken.reason})",
            repair_command(broken.extra),
        )


def _used_extras(settings: Settings) -> list[str]:
    """Return the extras that a verb of this project may import."""
    used = {
        "embedded": settings.neo4j.uri == "embedded",
        "openlineage": bool(settings.telemetry.lineage),
        "postgres": settings.audit.url.startswith("postgresql"),
        "ray": settings.engine.kind == "ray",
        "serve": True,
        "telemetry": settings.telemetry.traces,
        "tracking": settings.tracking.uri is not None,
        "train": True,
    }
    return [extra for extra, is_used in used.items() if is_used]


def _are(names: tuple[str, ...]) -> str:
    return "is" if len(names) == 1 else "are"
