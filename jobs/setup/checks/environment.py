"""Variables that look like settings and are ignored, and the times under `[schedule]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ringfence.jobs.config.settings import Settings
from ringfence.jobs.config.sources.injected_variables import find_injected
from ringfence.jobs.config.sources.server import VARIABLES, is_same_server
from ringfence.jobs.schedule.plan import configured_times, parse_triggers
from ringfence.jobs.setup.finding import Finding, attempt


def check_environment(environment: Mapping[str, str], uri: str = "") -> Iterator[Finding]:
    """Name what a cluster has set for its Services, and a NEO4J_URI of something else.

    `uri` is the address that the project uses.
    """
    other = environment.get(VARIABLES["uri"])
    if uri and other and not is_same_server(uri, other):
        text = f"{VARIABLES['uri']} of the environment is not this project's server and is ignored"
        yield Finding("ok", f"{text}: [neo4j] uri is {uri}")
    names = find_injected(environment)
    if names:
        text = f"{len(names)} variables that the cluster sets for its Services are ignored"
        yield Finding("ok", f"{text}: {', '.join(names)}")


def check_schedule(settings: Settings) -> Iterator[Finding]:
    """Read every trigger that is switched on."""
    times = [f"{job} {time!r}" for job, time in configured_times(settings).items()]
    if times:
        text = f"the schedule can be read: {', '.join(times)}"
        yield attempt(text, lambda: parse_triggers(settings))
    else:
        yield Finding("ok", "nothing is scheduled")
