"""Edits of shadow sets, their coverage and the runs that chose a version: found and named."""

import hashlib
import json

import numpy as np
import pytest
from sqlalchemy import select

from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Member
from ringfence.connector.store import tables
from ringfence.connector.store.audit_chain.summary import describe_entry
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.lifecycle.activations import newest_candidate, record_activation
from ringfence.connector.store.models import record_model
from ringfence.connector.store.shadow.consulted import consulted_runs, shadowed_runs
from ringfence.connector.store.shadow.coverage import record_shadow_coverage, shadow_totals
from ringfence.connector.store.shadow.sets import ShadowRun, record_shadow
from tests.jobs.integrity.sample_record import ENGINES, PLAN, project, writing
from tests.jobs.integrity.test_tampering import problems_after, problems_of

WHERE = "WHERE version = 'sample-3' AND seq = 2"
SET = "shadow_set of sample-3 in run 2"
EDITS = {
    "shadow_run.n_calibration": (
        f"UPDATE shadow_run SET n_calibration = 9 {WHERE}",
        "shadow_run of sample-3 in run 2: n_calibration changed",
    ),
    "shadow_run.failed": (
        "UPDATE shadow_run SET failed = NULL WHERE seq = 3",
        "shadow_run of sample-3 in run 3: failed changed",
    ),
    "shadow_run deleted": (
        f"DELETE FROM shadow_run {WHERE}",
        "shadow_run of sample-3 in run 2: the row is gone",
    ),
    "shadow_set.classes": (
        f"UPDATE shadow_set SET classes = '[]', covered = NULL {WHERE} AND covered IS NULL",
        f"{SET}: node_key, size, classes or p_values",
    ),
    "shadow_set.p_values": (
        f"UPDATE shadow_set SET p_values = '[1.0]' {WHERE}",
        f"{SET}: node_key, size, classes or p_values",
    ),
    "shadow_set.covered": (
        f"UPDATE shadow_set SET covered = NOT covered {WHERE} AND covered IS NOT NULL",
        f"{SET}: covered does not follow",
    ),
    "shadow_set moved": (
        f"UPDATE shadow_set SET seq = 1 {WHERE}",
        "shadow_set of sample-3 in run 1: rows that no run recorded",
    ),
    "shadow_set deleted": (f"DELETE FROM shadow_set {WHERE}", f"{SET}: 0 rows"),
    "shadow_coverage.covered": (
        f"UPDATE shadow_coverage SET covered = covered + 1 {WHERE}",
        "shadow_coverage of sample-3 in run 2: covered changed",
    ),
    "shadow_coverage deleted": (
        f"DELETE FROM shadow_coverage {WHERE}",
        "shadow_coverage of sample-3 in run 2: the row is gone",
    ),
    "shadow_coverage forged": (
        "INSERT INTO shadow_coverage SELECT project, version, 1, audited_ns, evaluated, known, "
        "covered, active_covered, both_covered, size, active_size, size_difference_squared "
        f"FROM shadow_coverage {WHERE}",
        "shadow_coverage of sample-3 in run 1: the row was never recorded",
    ),
    "consulted deleted": (
        f"DELETE FROM consulted {WHERE}",
        "consulted: the runs of activation 4",
    ),
    "consulted.known": (
        f"UPDATE consulted SET known = 1 {WHERE}",
        "consulted: the runs of activation 4",
    ),
    "consulted moved": (
        f"UPDATE consulted SET seq = 1 {WHERE}",
        "consulted: the runs of activation 4",
    ),
}


def _sets_of_run(store, seq):
    """Other sets than those in force: every class of the node, or none."""
    of = tables.prediction.c
    with store.reading() as connection:
        query = select(of.node_key).where(of.project == "p", of.seq == seq)
        keys = sorted(connection.execute(query).scalars())
    sets = np.arange(len(keys))[:, None] % 2 == np.zeros(len(PLAN.classes))
    p = np.where(sets, 0.5, 0.05)
    return PredictionTable(keys, PLAN.classes, sets, p, p - 1.0, np.ones(len(keys), np.int64))


@pytest.fixture(scope="module", params=ENGINES)
def shadowed(request, tmp_path_factory):
    """A third version shadows run 2, fails in run 3, and is promoted."""
    with project(request, tmp_path_factory.mktemp("shadow"), request.param) as (store, settings):
        with writing(store, settings) as writer:
            counts = {"train": 1, "validation": 0, "calibration": 0}
            manifest = dumps({"network": "GCN", "classes": PLAN.classes, "counts": counts})
            digest = hashlib.sha256(manifest.encode()).hexdigest()
            record_model(writer, "sample-3", manifest, digest, [Member("i:-1", "train", 0)])
            assert newest_candidate(store, "p") == "sample-3"
            sets = _sets_of_run(store, 2)
            row = ShadowRun("sample-3", 2, 0, "auto", "APS", 0.1, "marginal", 60, len(sets))
            record_shadow(writer, row, sets)
            with writer.store.transaction() as connection:
                _cover(connection)
            failed = ShadowRun("sample-3", 3, 0, "", "", 0.0, "", 0, 0, "ValueError: no")
            record_shadow(writer, failed, None)
            record_shadow_coverage(writer)
            assert record_shadow_coverage(writer) == []  # nothing changed since
            assert shadowed_runs(store, "p", "sample-3") == {2}
            record_activation(writer, "sample-3", "promoted", "smaller sets")
            assert newest_candidate(store, "p") is None
            record_activation(writer, "sample-1", "rolled back", "not better")
            record_activation(writer, "sample-3", "promoted", "once more")  # consults nothing new
        yield store, settings


def _cover(connection):
    """As an audit does when it notices the classes, which this record knew before."""
    from ringfence.connector.records import Label
    from ringfence.connector.store.shadow.sets import cover_shadow_sets

    of = tables.prediction.c
    query = select(of.node_key, of.label).where(of.project == "p", of.label.is_not(None))
    labels = [
        Label(key, label, False, False, False, None) for key, label in connection.execute(query)
    ]
    cover_shadow_sets(connection, "p", labels)


def test_an_untouched_record_has_no_problem_and_counts_both_sides(shadowed):
    store, settings = shadowed
    assert problems_of(store, settings) == []
    total = shadow_totals(store, "p")["sample-3"]
    of = tables.prediction.c
    with store.reading() as connection:
        query = select(tables.prediction).where(of.project == "p", of.seq == 2)
        rows = sorted(connection.execute(query), key=lambda row: row.node_key)
    known = [(i % 2 == 0, row.covered) for i, row in enumerate(rows) if row.label is not None]
    assert total.evaluated == len(rows) == PLAN.per_run
    assert 0 < total.known == len(known)
    assert total.covered == sum(full for full, _ in known)
    assert total.active_covered == sum(covered for _, covered in known)
    assert total.both_covered == sum(full and covered for full, covered in known)
    assert total.size == len(PLAN.classes) * ((len(rows) + 1) // 2)
    assert total.active_size == sum(row.size for row in rows)
    assert consulted_runs(store, "p", "sample-3") == {2}
    assert consulted_runs(store, "p", "sample-1") == frozenset()


def test_entries_are_described(shadowed):
    from ringfence.connector.store import chain

    with shadowed[0].reading() as connection:
        said = [describe_entry(entry) for entry in chain.read_entries(connection, "p")]
    assert "model sample-3 beside run 2: 40 shadow sets" in said
    assert "model sample-3 beside run 3: failed" in said
    assert "coverage of shadow sets, 1 rows" in said


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_shadow_tables_is_found_and_named(shadowed, edit):
    statement, words = EDITS[edit]
    found = problems_after(shadowed, [statement])
    assert any(words in problem for problem in found), (found, json.dumps(words))


def test_a_node_of_a_run_that_chose_the_version_must_not_calibrate_it(shadowed):
    forged = (
        "INSERT INTO joined (project, version, node_key, seq, evaluated_seq, label) "
        "SELECT project, 'sample-3', node_key, 3, 2, 'retail' FROM prediction WHERE seq = 2"
    )
    found = problems_after(shadowed, [forged])
    assert any("of runs that helped to choose it" in problem for problem in found)
