"""Whether the configured engine is installed, and can compute the project's network."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.finding import Finding
from ringfence.models.networks.registry import AUTO, has_layers


def check_engine(settings: Settings) -> Iterator[Finding]:
    """Report what an engine of workers can't do; the local engine needs no check."""
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
    if not has_layers(settings.network) and settings.network.lower() != AUTO:
        yield Finding(
            "error",
            f'[engine] kind = "{engine.kind}" can\'t compute the network {settings.network}',
            'a network of ringfence\'s own, or [engine] kind = "local"',
        )
        return
    where = f"of the cluster at {engine.address}" if engine.address else "started on this machine"
    yield Finding("ok", f"passes run on {engine.partitions} workers {where}")
