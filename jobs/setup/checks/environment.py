"""Variables of the environment that look like settings and are ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ringfence.jobs.config.sources.injected_variables import find_injected
from ringfence.jobs.setup.finding import Finding


def check_environment(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Name what a cluster has set for its Services; nothing where it has set nothing."""
    names = find_injected(environment)
    if names:
        text = f"{len(names)} variables that the cluster sets for its Services are ignored"
        yield Finding("ok", f"{text}: {', '.join(names)}")
