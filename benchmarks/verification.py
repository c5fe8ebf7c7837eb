"""`ringfence verify` at many predictions: digests, every row, derivation, since a checkpoint.

    python -m benchmarks.verification [--quick | --sizes 10x1000 100x10000] [--store postgresql]

Sizes are runs x predictions in each; without them 10,000 and 100,000 predictions, on both stores.
A million (`--sizes 100x10000`) take some ten times as long.

A made-up life, decided by the functions that scoring uses: p-values are drawn, classes become known
one run later, nodes join the calibration, the level adapts, the monitor is fed, every tenth run is
audited. Then the parts of a verification are timed on its record, without the graph: the chain and
the digests of all blocks (`--quick` of the command), every row (the first part of the whole), and
the derivation (its second part). Then a checkpoint is sealed, and a verification since it is timed
with nothing new (without and with the sample of older runs that is the default) and after one more
run with as many classes. CPU seconds of this process; PostgreSQL's own are not among them.
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
from ringfence.connector.store.audit_chain.keys import KeySource
from ringfence.connector.store.audit_chain.signature import SigningKeys, key_facts, record_key
from ringfence.connector.store.checkpoint.entries import record_checkpoint
from ringfence.jobs.config.load import load_values
from ringfence.jobs.integrity.checkpoint.derived_part import derive_part
from ringfence.jobs.integrity.checkpoint.draw import Sample, draw
from ringfence.jobs.integrity.checkpoint.part_check import find_part_edits
from ringfence.jobs.integrity.checkpoint.scope import scope_since
from ringfence.jobs.integrity.checkpoint.trusted import Base, find_base, make_checkpoint
from ringfence.jobs.integrity.derivation.derive import derive_entries
from ringfence.jobs.integrity.derivation.quick_check import find_quick_edits
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.project.audit_store import key_source
from tests.faults.servers import postgres
from tests.jobs.integrity.derivation.made_life import Life, begin
from tests.stores import open_at


def measure(name: str, count: int, per_run: int, full: bool) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'audit.db'}"
        if name == "postgresql":
            url, _restart = stack.enter_context(postgres(seed=0))
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

        def check_since(wanted: int) -> float:
            return check(lambda reader: _find_problems_since(reader, wanted))

        quick = check(lambda reader: list(find_quick_edits(reader, reader.record())))
        rows = derived = None
        if full:
            rows = check(lambda reader: list(find_edits(reader, reader.record())))
            derived = check(lambda reader: derive_entries(reader, reader.record()).problems())
        _seal_checkpoint(life, source)
        sample = settings.audit.verify_sample_nodes
        nothing_new, drawn = check_since(0), check_since(sample)
        life.live(count + 1, per_run)
        one_run = check_since(0)
    return {
        "store": name, "predictions": count * per_run, "runs": count, "quick_s": quick,
        **({"rows_s": rows, "derived_s": derived} if full else {}),
        "since_s": nothing_new, "since_with_sample_s": drawn, "since_one_run_s": one_run,
    }  # fmt: skip


def _seal_checkpoint(life: Life, source: KeySource) -> None:
    """Make a signing key, and seal what a full verification that passed would."""
    keys = SigningKeys(source.project_folder)
    signing_key = keys.write_next()
    record_key(life.writer, key_facts(signing_key, None, None))
    with record_snapshot(life.store, "p", source) as reader:
        checkpoint = make_checkpoint(reader.record(), Base(None), 0, 0, Sample())
    assert checkpoint is not None
    record_checkpoint(life.writer, checkpoint, signing_key)


def _find_problems_since(reader: RecordReader, wanted: int) -> list[str]:
    """Do with SQL what a verification since a checkpoint does."""
    record = reader.record()
    base = find_base(record, "p")
    assert base.sealed is not None, base.reason
    scope = scope_since(record, base.sealed.checkpoint.entry)
    sizes = {seq: row["n_evaluated"] for seq, row in record.run_columns.items()}
    older = {seq: size for seq, size in sizes.items() if seq not in scope.runs}
    sample = draw(older, wanted, reader.key, "nonce")
    edits = list(find_part_edits(reader, record, scope, sample))
    return edits + derive_part(reader, record, scope.runs | set(sample.runs)).problems()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sizes", nargs="+", default=["10x1000", "10x10000"])
    parser.add_argument("--without-full", action="store_true", help="do not compare all rows")
    parser.add_argument("--store", nargs="+", default=["sqlite", "postgresql"])
    given = parser.parse_args()
    rows = []
    for name in given.store:
        for size in ["10x200"] if given.quick else given.sizes:
            rows.append(measure(name, *map(int, size.split("x")), full=not given.without_full))
            show(rows[-1])
    keep("verification", rows, given.quick)


if __name__ == "__main__":
    main()
