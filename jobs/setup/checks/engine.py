"""Whether the configured engine is there, and can compute what the project asks for."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.finding import Finding
from ringfence.models.networks.registry import has_layers


def check_engine(settings: Settings) -> Iterator[Finding]:
    """Say what an engine of workers can't do; the engine of one machine needs no word."""
    engine = settings.engine
    if engine.kind == "local":
        return
    if find_spec(engine.kind) is None:
        yield Finding(
            "error",
            f'[engine] kind = "{engine.kind}", but Ray is not installed',
            "pip install 'ringfence[ray]', or [engine] kind = \"local\"",
        )
        return
    if not has_layers(settings.network):
        yield Finding(
            "error",
            f'[engine] kind = "{engine.kind}" can\'t compute the network {settings.network}',
            'a network of ringfence\'s own, or [engine] kind = "local"',
        )
        return
    where = f"of the cluster at {engine.address}" if engine.address else "started on this machine"
    yield Finding("ok", f"passes run on {engine.partitions} workers {where}")
