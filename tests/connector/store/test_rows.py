"""Records come back from both databases as they were written; the chain holds SQL's own text."""

import json
from dataclasses import asdict, fields

import numpy as np
import pytest
from sqlalchemy import select

from ringfence.connector.prediction_table import FurtherSet, FurtherSizes
from ringfence.connector.records import (
    CoverageRow,
    Member,
    Prediction,
    RejectedNode,
    Run,
    RunFacts,
    StoredCoverage,
    StoredPrediction,
)
from ringfence.connector.store import coverage, models, predictions, runs, tables
from ringfence.connector.store.rows import PREDICTION
from ringfence.connector.store.runs import Decision
from ringfence.connector.store.thresholds import recorded

FACTS = RunFacts(
    started_ns=1, watermark_from_ns=None, watermark_to_ns=2, rule="NodeEx", score="APS", alpha=0.1,
    threshold=None, threshold_node=None, threshold_edge=-0.5, threshold_naive=-0.25,
    n_calibration=9, effective_calibration=9.0, n_evaluated=3, n_waiting=1, n_already_known=0,
    n_quarantined=1, n_nodes=20, n_relationships=30, model="m", config="c", software="s",
    notes=("a note", "Größe"), calibration_scores=(-0.5, -0.25),
    watch={"state": {"a": 1}, "mark_ns": 7, "new": 0},
)  # fmt: skip
SETS = [
    Prediction(f"s:{key}", ("a", "ß")[:size], (0.25, 0.5), (-0.5, 0.0), degree=size)
    for size, key in enumerate(("one", "three", "two"))
]


def decide(writer):
    models.record_model(writer, "m", "{}", "digest", [Member("i:1", "calibration", 0)])
    rejected = [RejectedNode("4:x:1", None, "the key is missing")]
    return runs.decide(writer, Decision(FACTS, SETS, rejected))


def test_a_run_comes_back_as_it_was_decided(writer):
    seq = decide(writer)
    run = runs.one_run(writer.store, "p", seq)
    assert {name: getattr(run, name) for name in asdict(FACTS)} == {
        field.name: getattr(FACTS, field.name) for field in fields(FACTS)
    }
    assert (run.state, run.applied_ns, run.timings) == ("decided", None, {})
    runs.close_run(writer, seq, ["s:two"], {"read": 0.5})
    assert runs.applied_runs(writer.store, "p") == [runs.one_run(writer.store, "p", seq)]
    assert runs.one_run(writer.store, "p", seq).timings == {"read": 0.5}


def test_the_chain_holds_the_columns_of_a_run_as_sql_does(writer):
    seq = decide(writer)
    with writer.store.reading() as connection:
        bodies = [
            json.loads(body) for body in connection.execute(select(tables.audit.c.body)).scalars()
        ]
        row = connection.execute(select(tables.run)).one()._asdict()
    decided = next(body["run"] for body in bodies if body["kind"] == "decided")
    assert decided == {name: row[name] for name in decided}
    bookkeeping = {"project", "state", "token", "applied_ns"}
    assert decided.keys() == row.keys() - bookkeeping
    assert row["notes"] == '["a note", "Gr\\u00f6\\u00dfe"]'
    assert row["watch"] == '{"mark_ns":7,"new":0,"state":{"a":1}}'
    assert (row["calibration_scores"], row["timings"], row["seq"]) == ("[-0.5,-0.25]", "{}", seq)


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_predictions_come_back_in_blocks_by_key_and_keep_their_digest(writer, rows):
    seq = decide(writer)
    blocks = list(predictions.payload(writer.store, "p", seq, rows))
    assert max(map(len, blocks)) == min(rows, 3)
    read = [stored for block in blocks for stored in block]
    assert [stored.node_key for stored in read] == ["s:one", "s:three", "s:two"]
    assert [Prediction(s.node_key, s.classes, s.p_values, s.scores, s.degree) for s in read] == SETS
    assert [stored.size for stored in read] == [0, 1, 2]
    assert all(stored.in_graph and stored.label is None for stored in read)
    assert predictions.payload_digest(read) == predictions.payload_digest(SETS)
    keys = [
        key for block in predictions.payload_keys(writer.store, "p", seq, rows) for key in block
    ]
    assert keys == [stored.node_key for stored in read]
    assert predictions.some_predictions(writer.store, "p", ["s:two"]) == [read[2]]


@pytest.mark.parametrize("nodes", [0, 1, 3])
def test_sets_at_further_alphas_are_written_in_blocks_with_the_digest_of_their_rows(
    writer, nodes, monkeypatch
):
    monkeypatch.setattr(recorded, "ROWS_PER_STATEMENT", 2)
    keys, alphas = [one.node_key for one in SETS[::-1]][:nodes], (0.3, 0.05)
    sizes = np.arange(2 * nodes).reshape(2, nodes)
    decide(writer)
    with writer.store.transaction() as connection:
        further = FurtherSizes(keys, alphas, sizes)
        digest = recorded.insert_further_sets(connection, "p", 1, further)
        rows = connection.execute(select(tables.further_set)).all()
    found = [FurtherSet(row.node_key, row.alpha, row.size) for row in rows]
    expected = [
        FurtherSet(key, alpha, int(sizes[place, node]))
        for node, key in enumerate(keys)
        for place, alpha in enumerate(alphas)
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert digest == recorded.further_digest(found)


def test_a_run_without_predictions_has_no_block(writer):
    assert list(predictions.payload(writer.store, "p", 1, 10)) == []


def test_records_have_the_columns_of_their_tables():
    assert {field.name for field in fields(Run)} == set(tables.run.c.keys())
    assert {field.name for field in fields(StoredCoverage)} == set(tables.coverage.c.keys())
    stored = sorted(field.name for field in fields(StoredPrediction))
    assert stored == sorted(column.name for column in PREDICTION)
    assert set(stored) == set(tables.prediction.c.keys()) - {"size", "top_p"}


def coverage_row(**values):
    numbers = {field.name: 0 for field in fields(CoverageRow)}
    texts = {"slice": "run", "name": "", "model": "m", "bias_words": "", "raised_by": ""}
    rest = {"seq": 1, "coverage": None, "bias": None, "exact": True, "verdict": "kept", "words": ""}
    return CoverageRow(**numbers | texts | rest | values)


def test_only_coverage_that_changed_is_written_and_what_moved_on_goes(writer):
    decide(writer)
    kept, moved = coverage_row(), coverage_row(slice="class", name="a")
    changed, gone = coverage.record_coverage(writer, [kept, moved])
    assert ([row.slice for row in changed], gone) == (["run", "class"], [])
    assert coverage.record_coverage(writer, [kept, moved]) == ([], [])
    changed, gone = coverage.record_coverage(writer, [coverage_row(known=1, coverage=1.0)])
    assert [row.known for row in changed] == [1]
    assert [(row.slice, row.name) for row in gone] == [("class", "a")]
    assert coverage.stored(writer.store, "p") == changed


def test_parts_of_the_audit_mark_move_alone(writer):
    assert coverage.mark_of(writer.store, "p") is None
    first = coverage.set_mark(writer, None, labels_ns=5)
    coverage.set_mark(writer, first, advice={"nodes": 3})
    mark = coverage.mark_of(writer.store, "p")
    assert (mark.labels_ns, mark.grouped_seq, mark.advice) == (5, 0, {"nodes": 3})
