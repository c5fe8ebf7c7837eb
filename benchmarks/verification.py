"""`ringfence verify` at many predictions: digests alone, every row, and entries derived again.

    python -m benchmarks.verification [--quick | --runs 100 --per-run 10000] [--store postgresql]

A made-up life, decided by the functions that scoring uses: p-values are drawn, classes become known
one run later, nodes join the calibration, the level adapts, the monitor is fed, every tenth run is
audited. Then the parts of a verification are timed on its record, without the graph: the chain and
the digests of all blocks (`--quick` of the command), every row (the first part of the whole), and
the derivation (its second part). CPU seconds of this process; PostgreSQL's own are not among them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.measuring import cpu_seconds, keep, show
from ringfence.connector.store.audit_chain.integrity import RecordReader, record_snapshot
from ringfence.jobs.config.load import load_values
from ringfence.jobs.integrity.derivation.derive import derive_entries
from ringfence.jobs.integrity.derivation.quick_check import find_quick_edits
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.project.audit_store import key_source
from tests.faults.servers import postgres
from tests.jobs.integrity.derivation.made_life import begin
from tests.stores import open_at


def measure(name: str, count: int, per_run: int) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'audit.db'}"
        if name == "postgresql":
            url = stack.enter_context(postgres(seed=0))
        graph = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}
        settings = load_values({"project": "p", "graph": graph}, folder / "ringfence.toml", {})
        store = open_at(url)
        stack.callback(store.close)
        life = begin(store, settings)
        for number in range(1, count + 1):
            life.live(number, per_run)
        source = key_source(settings)

        def check(work: Callable[[RecordReader], list[str]]) -> float:
            with record_snapshot(store, "p", source) as reader:
                seconds, problems = cpu_seconds(lambda: work(reader))
            assert problems == [], problems[:3]
            return seconds

        quick = check(lambda reader: list(find_quick_edits(reader, reader.record())))
        rows = check(lambda reader: list(find_edits(reader, reader.record())))
        derived = check(lambda reader: derive_entries(reader, reader.record()).problems())
    return {
        "store": name, "predictions": count * per_run, "runs": count,
        "quick_s": quick, "rows_s": rows, "derived_s": derived,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--per-run", type=int, default=10_000)
    parser.add_argument("--store", nargs="+", default=["sqlite"])
    given = parser.parse_args()
    sizes = (10, 200) if given.quick else (given.runs, given.per_run)
    rows = []
    for name in given.store:
        rows.append(measure(name, *sizes))
        show(rows[-1])
    keep("verification", rows, given.quick)


if __name__ == "__main__":
    main()
