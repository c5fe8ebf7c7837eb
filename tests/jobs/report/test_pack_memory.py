"""What is in memory while a pack is written: not its rows, however many there are."""

import gc
import tracemalloc

import pytest

from ringfence.connector.store import chain
from ringfence.connector.store.queries import pack_rows
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.tables import run
from ringfence.jobs.config.load import load_values
from ringfence.jobs.report.pack import run_pack
from ringfence.jobs.report.pack_archive import new_archive
from ringfence.jobs.report.pack_rows import (
    plain_name,
    write_groups,
    write_labels,
    write_predictions,
    write_table,
)
from ringfence.jobs.report.period import Period, runs_of_period
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.jobs.views.tables import TABLES, as_csv
from tests.jobs.integrity.sample_record import writing
from tests.jobs.report.test_pack_rows import at_store
from tests.stores import open_at

FEW, MANY, PER_RUN = 2, 10, 400
SMALL, LARGE = 1_000, 5_000
SAME, GROWS = 1.3, 3.0


def filled(folder, runs):
    folder.mkdir()
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "audit": {"groups": ["region"]},
    }
    settings = load_values(values, folder / "ringfence.toml", {})
    store = open_at(f"sqlite:///{folder / 'audit.db'}")
    fill_store(store, settings, Plan(runs=runs, per_run=PER_RUN, known_runs=runs))
    return store, settings


def peak_of(work):
    """The most bytes that Python held at once, beyond what it held before; the second time."""
    work()  # what is made once and kept: compiled statements, imports
    gc.collect()
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def nothing(*_):
    pass


def write_rows(store, path):
    runs = runs_of_period(store, "p", Period())
    with new_archive(path) as archive:
        scratch = path.with_suffix(".parquet")
        write_predictions(archive, store, "p", runs, plain_name, scratch, nothing)
        scratch.unlink(missing_ok=True)
        write_labels(archive, store, "p", 0, plain_name, nothing)
        write_groups(archive, store, "p", runs, plain_name, nothing)


def hold_rows(store):
    """The control: every block of predictions is kept."""
    with store.reading() as connection:
        seqs = connection.execute(run.select().with_only_columns(run.c.seq)).scalars().all()
    return [
        block for seq in seqs for block in pack_rows.prediction_blocks(store, "p", seq, plain_name)
    ]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_predictions(tmp_path):
    peaks, held = [], []
    for runs in (FEW, MANY):
        store, _ = filled(tmp_path / str(runs), runs)
        path = tmp_path / f"{runs}.zip"
        peaks.append(peak_of(lambda at=store, to=path: write_rows(at, to)))
        held.append(peak_of(lambda at=store: hold_rows(at)))
        store.close()
    assert peaks[1] < SAME * peaks[0], peaks
    assert held[1] > GROWS * held[0], held


def write_chain_table(queries, path):
    view = TABLES["chain"]
    with new_archive(path) as archive:
        write_table(archive, view, view.blocks(queries))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_table_of_the_chain(tmp_path):
    opened = filled(tmp_path / "store", 1)
    store, _ = opened
    queries, view = ProjectQueries(store, "p").unlimited(), TABLES["chain"]
    peaks, held = [], []
    for entries in (SMALL, LARGE):
        with writing(*opened) as writer, store.transaction() as connection:
            for n in range(entries - queries.chain_length()):
                chain.append(connection, "p", writer.key, "noted", {"words": f"{n} " * 40})
        peaks.append(peak_of(lambda: write_chain_table(queries, tmp_path / "a.zip")))
        held.append(peak_of(lambda: as_csv(view.read(queries))))
    assert "".join(as_csv(view.read(queries))).count("\n") == LARGE + 1
    assert peaks[1] < SAME * peaks[0], peaks
    assert held[1] > GROWS * held[0], held
    store.close()


def test_every_part_that_grows_has_its_progress(tmp_path):
    store, settings = filled(tmp_path / "store", FEW)
    said = {}
    run_pack(
        at_store(store, settings), tmp_path / "a.zip",
        progress=lambda what, done, total: said.setdefault(what, []).append((done, total)),
    )  # fmt: skip
    parts = {
        "record compared with the chain", "entries of the chain packed", "predictions packed",
        "classes packed", "runs whose groups are packed", "tables packed", "model cards packed",
    }  # fmt: skip
    assert said.keys() == parts
    assert said["predictions packed"][-1] == (FEW * PER_RUN, FEW * PER_RUN)
    assert said["tables packed"][-1] == (len(TABLES), len(TABLES))
    for counts in said.values():
        assert counts == sorted(counts)
    store.close()
