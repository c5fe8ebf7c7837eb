"""What a run or an audit reads is compared with its seal in the same snapshot, and refused."""

import pytest
from sqlalchemy import text

from ringfence.connector.errors import StoreError
from ringfence.connector.store.audit_chain.basis.first_sightings import sightings_on_record
from ringfence.connector.store.audit_chain.basis.mark import mark_on_record
from ringfence.connector.store.audit_chain.basis_check import Basis
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.lifecycle.activations import active_version
from ringfence.jobs.auditing.alarms.state import raise_alarms
from tests.jobs.integrity.sample_record import ENGINES, drop_triggers, project, writing
from tests.jobs.integrity.test_later_tables import later_record
from tests.jobs.integrity.test_tampering import append_as_before, as_migrated

NODE = "node_key = 's:account 2-3'"
SCORE_EDITS = {
    "UPDATE run SET levels = '{}' WHERE seq = 4": "run 4: levels changed",
    "UPDATE run SET watch = '{}' WHERE seq = 3": "run 3: watch changed",
    "UPDATE run SET alpha = 0.6": "run 1: alpha changed",
    "UPDATE run SET n_evaluated = 3 WHERE seq = 2": "run 2: n_evaluated changed",
    "UPDATE run SET decided_ns = 1 WHERE seq = 2": "run 2: decided_ns changed",
    "UPDATE lease SET next_seq = 9": "lease: next_seq is 9",
    "UPDATE lease SET watermark_ns = 9": "lease: watermark_ns is 9",
    "UPDATE model SET manifest = '{}' WHERE version = 'sample-2'": "manifest of model sample-2",
    "UPDATE prediction SET label = 'mule' WHERE label IS NOT NULL": "not as their label rows say",
    "UPDATE prediction SET label = 'mule' WHERE label IS NULL": "not as their label rows say",
    "UPDATE prediction SET labelled_ns = 1 WHERE label IS NOT NULL": "not as their label rows",
    "UPDATE label SET label = 'mule'": "rows are not those that were recorded",
    "UPDATE label SET covered = NOT covered": "rows are not those that were recorded",
    "UPDATE label SET noticed_ns = noticed_ns + 1": "0 rows, but 28 were recorded",
    "DELETE FROM label WHERE node_key = 's:new 0'": "0 rows, but 1 were recorded",
    "UPDATE prediction SET p_values = '[0,0,0,0]'": "run 1: its predictions are not those",
    f"UPDATE prediction SET scores = '[0,0,0,0]' WHERE {NODE}": "run 2: its predictions",
    f"UPDATE prediction SET seq = 3 WHERE {NODE}": "run 2: its predictions are not those",
    "UPDATE joined SET label = 'mule'": "joined the calibration of sample-1 are not those",
    "UPDATE member SET class_index = 0": "members of model sample-1 are not those",
    "UPDATE model SET trained_ns = 1 WHERE version = 'sample-2'": "sample-2: trained_ns is 1",
    "UPDATE activation SET version = 'sample-2'": "activation 1: version changed",
    "UPDATE activation SET reason = 'better'": "activation 1: reason changed",
    "DELETE FROM activation": "activation 1: the row is gone, model sample-1 was in use",
    "UPDATE audit SET body = replace(body, '1', '2') WHERE n = 3": "broken at entry 3",
    "DELETE FROM audit WHERE n = 3": "broken at entry 3",
}
AUDIT_EDITS = {
    "UPDATE prediction SET covered = TRUE WHERE label IS NOT NULL": "not as their label rows say",
    "UPDATE prediction SET covered = TRUE WHERE label IS NULL": "not as their label rows say",
    "UPDATE prediction SET unseen = TRUE WHERE label IS NOT NULL": "not as their label rows say",
    "UPDATE prediction SET covered_naive = NOT covered_naive": "not as their label rows say",
    f"UPDATE prediction SET size = size + 1 WHERE {NODE}": "size of some predictions",
    f"UPDATE prediction SET degree = 99 WHERE {NODE}": "run 2: its predictions are not those",
    f"UPDATE prediction SET band = 'x' WHERE {NODE}": "run 2: its predictions are not those",
    "UPDATE threshold SET n_calibration = 3": "the thresholds of run 4 are not those",
    "UPDATE further_set SET size = 1": "at further alphas are not those",
    "UPDATE grouping SET value = 'south'": "the groups of run 1 are not those",
    "DELETE FROM grouping": "the groups of run 1 are not those",
    "UPDATE coverage SET verdict = 'fine' WHERE slice = 'total'": "verdict changed after the audit",
    "DELETE FROM coverage WHERE slice = 'run'": "the row is gone",
    "UPDATE alarm SET since_ns = 1": "not those that the last check left",
    "DELETE FROM alarm": "the row stands in one of SQL and the audit chain alone",
    "UPDATE audit_mark SET labels_ns = 9": "labels_ns is 9, but the last audit left",
    "UPDATE audit_mark SET grouped_seq = grouped_seq + 5": "audit_mark: grouped_seq is",
    "UPDATE audit_mark SET advice = NULL": "audit_mark: advice is None",
    "DELETE FROM audit_mark": "audit_mark: the project's row is gone",
    "UPDATE first_seen SET seen_ns = 5 WHERE node_key = 's:b'": "rows that no run recorded",
    "DELETE FROM first_seen WHERE node_key = 's:c'": "0 rows, but 1 were recorded",
    "INSERT INTO consulted (project, n, version, seq, known) VALUES ('p', 1, 'sample-1', 2, 3)": (
        "consulted: the runs of activation 1 are not those"
    ),
}


@pytest.fixture(scope="module", params=ENGINES)
def later(request, tmp_path_factory):
    with later_record(request, tmp_path_factory.mktemp("basis"), request.param) as opened:
        yield opened


def check(connection, settings, *, counted):
    basis = Basis(connection, "p", chain_key(None, settings.engine.folder))
    basis.require_runs()
    basis.require_labels(counted=counted)
    basis.require_active(active_version(connection, "p"))
    basis.require_model("sample-1")
    basis.require_predictions({1, 2, 3}, counted=counted)
    if counted:
        basis.require_predictions({4}, counted=True)
        basis.require_groups()
        basis.require_coverage()
        basis.require_alarms()
        basis.require_consulted()
        mark_on_record(connection, "p", basis.key)
        sightings_on_record(connection, "p", basis.key)


def check_after(opened, statement, *, counted):
    """Check inside a transaction that made an edit, which is then rolled back."""
    store, settings = opened
    with store.engine.connect() as connection:
        drop_triggers(connection)
        changed = connection.execute(text(statement.replace(":", r"\:")))
        assert changed.rowcount != 0, "changes nothing"
        try:
            check(connection, settings, counted=counted)
        finally:
            connection.rollback()


@pytest.mark.parametrize("counted", [False, True])
def test_a_record_as_it_was_sealed_is_taken(later, counted):
    store, settings = later
    with store.at_one_moment() as held, held.reading() as connection:
        check(connection, settings, counted=counted)


def test_another_version_than_the_one_in_use_is_refused(later):
    store, settings = later
    with store.at_one_moment() as held, held.reading() as connection:
        basis = Basis(connection, "p", chain_key(None, settings.engine.folder))
        basis.require_never_used("sample-9")
        for version in ("sample-2", None):
            with pytest.raises(StoreError, match="was read as such"):
                basis.require_active(version)
        with pytest.raises(StoreError, match="was read as a candidate"):
            basis.require_never_used("sample-1")


@pytest.mark.parametrize("edit", SCORE_EDITS)
def test_an_edit_of_what_a_run_reads_is_refused(later, edit):
    with pytest.raises(StoreError, match=SCORE_EDITS[edit]):
        check_after(later, edit, counted=False)


@pytest.mark.parametrize("edit", AUDIT_EDITS)
def test_an_edit_of_what_an_audit_counts_is_refused(later, edit):
    with pytest.raises(StoreError, match=AUDIT_EDITS[edit]):
        check_after(later, edit, counted=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_record_of_an_older_version_is_taken(request, tmp_path, engine):
    with project(request, tmp_path, engine, append_as_before) as opened:
        as_migrated(opened[0])
        check_after(opened, "UPDATE lease SET owner = 'nobody'", counted=False)
        with pytest.raises(StoreError, match="rows are not those"):
            check_after(opened, "UPDATE label SET label = 'mule'", counted=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_audit_goes_on_from_in_a_record_of_an_older_version_is_taken(
    request, tmp_path, engine
):
    with project(request, tmp_path, engine, append_as_before) as (store, settings):
        key = chain_key(None, settings.engine.folder)
        with store.at_one_moment() as held, held.reading() as connection:
            basis = Basis(connection, "p", key)
            basis.require_labels(counted=True)
            basis.require_coverage()
            basis.require_alarms()
            basis.require_consulted()
            assert mark_on_record(connection, "p", key).grouped_seq == 3
            assert sightings_on_record(connection, "p", key) == {}  # it has creation times
        with writing(store, settings) as writer:
            raise_alarms(writer, settings)


def test_a_snapshot_does_not_see_what_is_written_later(later):
    store, settings = later
    with store.at_one_moment() as held, held.reading() as connection:
        check(connection, settings, counted=False)
        with store.transaction() as other:
            other.execute(text("UPDATE run SET alpha = 0.6"))
        check(connection, settings, counted=False)
    with store.reading() as connection, pytest.raises(StoreError, match="alpha changed"):
        check(connection, settings, counted=False)
    with store.transaction() as other:
        other.execute(text("UPDATE run SET alpha = 0.1"))
