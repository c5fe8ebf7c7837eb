"""A first `ringfence prune`: how long it takes, and for how long one turn of it holds the lease.

    python -m benchmarks.retention [--nodes 200000 --per-run 20000 --store sqlite postgresql]

A made-up record of known, audited runs is pruned turn by turn as the command does it, without the
graph. `turn_s` is the longest turn on the clock: scoring waits no longer than that. `whole_s` is
how long all turns took; before there were turns, the lease was held for that long.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.measuring import cpu_seconds, keep, show
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.writer import Writer
from ringfence.jobs.config.audit import AuditSettings
from ringfence.jobs.config.load import load_values
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.retention.prune import find_old, first_turn, remove_old
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.faults.servers import postgres
from tests.stores import open_at

A_MOMENT = 1e-9
OPEN = AuditSettings(keep_days=A_MOMENT, keep_open_days=A_MOMENT)


def measure(name: str, nodes: int, per_run: int) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'audit.db'}"
        if name == "postgresql":
            url = stack.enter_context(postgres(seed=0))
        graph = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}
        settings = load_values({"project": "p", "graph": graph}, folder / "ringfence.toml", {})
        store = open_at(url)
        stack.callback(store.close)
        fill_store(store, settings, Plan(runs=nodes // per_run, per_run=per_run, known=1.0))
        turns: list[float] = []

        def prune() -> None:
            left = 1
            while left:
                start = time.perf_counter()
                held = acquire(store, "p", "benchmark", 3_600)
                writer = Writer(store, held, chain_key(None, settings.engine.folder))
                plan = first_turn(find_old(store, "p", OPEN, A_MOMENT))
                left = remove_old(writer, key_source(settings), plan, lambda *_: None).left
                release(store, held)
                turns.append(time.perf_counter() - start)

        cpu, _ = cpu_seconds(prune)
    return {"store": name, "nodes": nodes, "per_run": per_run, "cpu_seconds": cpu,
            "whole_s": sum(turns), "turns": len(turns), "turn_s": max(turns)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--per-run", type=int, default=20_000)
    parser.add_argument("--store", nargs="+", default=["sqlite", "postgresql"])
    given = parser.parse_args()
    nodes = 40_000 if given.quick else given.nodes
    rows = []
    for name in given.store:
        rows.append(measure(name, nodes, given.per_run))
        show(rows[-1])
    keep("retention", rows, given.quick)


if __name__ == "__main__":
    main()
