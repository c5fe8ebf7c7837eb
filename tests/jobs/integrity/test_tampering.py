"""Whoever can write SQL, without the chain's key: every edit is found and named.

One project per engine; an edit is made in a transaction, looked for in it, and rolled back.
"""

import json
import os
from contextlib import contextmanager
from unittest import mock

import pytest
from sqlalchemy import create_engine, make_url, text

from ringfence.connector.records import KnownClass, Prediction
from ringfence.connector.store import chain, coverage, labels, predictions, runs
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.engine import dumps, open_store
from ringfence.connector.store.labels import OpenPrediction
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.rescores import record_rescores
from ringfence.connector.store.runs import Decision
from ringfence.connector.store.trail.integrity import RecordReader, record_snapshot
from ringfence.connector.store.writer import Writer
from ringfence.jobs.auditing.alarms.state import raise_alarms
from ringfence.jobs.auditing.audit import count_coverage
from ringfence.jobs.config.load import load_values
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.samples.audit_store import Plan, fill_store

PLAN = Plan(runs=3, per_run=40, calibration=60, covered=0.4)  # so few that an alarm fires
GONE, RETURNED = "s:account 1-0", "s:account 1-1"
ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@contextmanager
def database(request, folder, engine):
    if engine == "sqlite":
        yield f"sqlite:///{folder / 'audit.db'}", None
        return
    server = request.getfixturevalue("postgres_server")
    name = f"tampering_{os.getpid()}_{folder.name.replace('-', '_').lower()}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    address = make_url(server).set(database=name)
    password = None if address.password is None else str(address.password)
    yield address._replace(password=None).render_as_string(), password
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


@contextmanager
def project(request, folder, engine, appending=chain.append):
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "audit": {"groups": ["region"]},
        "alarms": {"pending_minutes": 0},
    }
    settings = load_values(values, folder / "ringfence.toml", {})
    with database(request, folder, engine) as (url, password):
        store = open_store(url, password)
        with mock.patch.object(chain, "append", appending):
            fill_store(store, settings, PLAN)
            with writing(store, settings) as writer:
                predictions.mark_gone(writer, [GONE])
                record_rescores(writer, "sample-1", 0.1, "asked for", [some_set(RETURNED)])
        yield store, settings
        store.close()


@contextmanager
def writing(store, settings):
    held = acquire(store, "p", "test", 600)
    yield Writer(store, held, chain_key(None, settings.engine.folder))
    release(store, held)


def some_set(key):
    return Prediction(key, ("retail",), (0.9, 0.01, 0.02, 0.03), (-0.1, -0.9, -0.9, -0.9), 4)


@pytest.fixture(scope="module", params=ENGINES)
def sealed(request, tmp_path_factory):
    with project(request, tmp_path_factory.mktemp("sealed"), request.param) as opened:
        yield opened


def problems_after(opened, statements):
    """The problems that `find_edits` names after some statements, which are rolled back."""
    store, settings = opened
    with store.engine.connect() as connection:
        for statement in "; ".join(statements).split("; "):
            if " audit" in statement:
                drop_triggers(connection)
            changed = connection.execute(text(statement.replace(":", r"\:")))
            assert changed.rowcount != 0, f"changes nothing: {statement}"
        reader = RecordReader(connection, "p")
        key = chain_key(None, settings.engine.folder)
        found = list(find_edits(reader, reader.record(key)))
        connection.rollback()
    return found


def drop_triggers(connection):
    if connection.dialect.name == "sqlite":
        for verb in ("update", "delete"):
            connection.execute(text(f"DROP TRIGGER IF EXISTS audit_no_{verb}"))
    else:
        connection.execute(text("DROP TRIGGER IF EXISTS audit_append_only ON audit"))


def known(opened):
    """The key of a node of known class, out of the middle."""
    with opened[0].reading() as connection:
        query = "SELECT node_key FROM label WHERE node_key LIKE 's:account 2-%' ORDER BY node_key"
        return connection.execute(text(query.replace(":", r"\:"))).scalars().all()[3]


RECOUNT = (
    "UPDATE coverage SET covered = covered + 1, coverage = 1.0 * (covered + 1) / known "
    "WHERE slice IN ('run', 'total', 'window') AND seq >= 2"
)
NEXT_LABELS = "UPDATE label SET covered = NOT covered WHERE node_key = '{node}'"
COPY_LABEL = (
    "INSERT INTO label (project, node_key, noticed_ns, label, happened_ns, covered, covered_naive, "
    "unseen) SELECT project, node_key, noticed_ns{shift}, 'mule', NULL, covered, covered_naive, "
    "unseen FROM label WHERE node_key = '{node}'"
)
COPY_RUN = (
    "INSERT INTO run (project, seq, state, token, started_ns, decided_ns, applied_ns, rule, score, "
    "alpha, n_calibration, effective_calibration, n_evaluated, n_waiting, n_already_known, "
    "n_quarantined, n_nodes, n_relationships, model, config, software, notes, timings) SELECT "
    "project, 4, state, token, started_ns, decided_ns, applied_ns, rule, score, alpha, "
    "n_calibration, effective_calibration, 0, n_waiting, n_already_known, n_quarantined, n_nodes, "
    "n_relationships, model, config, software, notes, timings FROM run WHERE seq = 3"
)

# name: (the edit, its obvious cover-up, words that a problem must have)
MATRIX = {
    "prediction.covered": (
        "UPDATE prediction SET covered = NOT covered WHERE node_key = '{node}'",
        [NEXT_LABELS, RECOUNT],
        "prediction {node} (run 2): covered",
    ),
    "every prediction.covered": (
        "UPDATE prediction SET covered = FALSE WHERE label IS NOT NULL",
        ["UPDATE label SET covered = FALSE", "UPDATE coverage SET covered = 0, coverage = 0"],
        ": covered",
    ),
    "prediction.covered_naive": (
        "UPDATE prediction SET covered_naive = NOT covered_naive WHERE node_key = '{node}'",
        ["UPDATE label SET covered_naive = NOT covered_naive WHERE node_key = '{node}'"],
        "prediction {node} (run 2): covered_naive",
    ),
    "prediction.unseen": (
        "UPDATE prediction SET unseen = NOT unseen WHERE node_key = '{node}'",
        ["UPDATE label SET unseen = NOT unseen WHERE node_key = '{node}'"],
        "prediction {node} (run 2): unseen",
    ),
    "prediction.label": (
        "UPDATE prediction SET label = 'nobody' WHERE node_key = '{node}'",
        ["UPDATE label SET label = 'nobody' WHERE node_key = '{node}'"],
        "label",
    ),
    "prediction.label forgotten": (
        "UPDATE prediction SET label = NULL, labelled_ns = NULL, covered = NULL, "
        "covered_naive = NULL, unseen = NULL WHERE node_key = '{node}'",
        ["DELETE FROM label WHERE node_key = '{node}'", RECOUNT],
        "label",
    ),
    "prediction.labelled_ns": (
        "UPDATE prediction SET labelled_ns = labelled_ns + 1 WHERE node_key = '{node}'",
        ["UPDATE label SET noticed_ns = noticed_ns + 1 WHERE node_key = '{node}'"],
        "label",
    ),
    "prediction.degree": (
        "UPDATE prediction SET degree = degree + 1 WHERE node_key = '{node}'",
        ["UPDATE coverage SET mean_degree = mean_degree + 0.1 WHERE seq = 2"],
        "run 2: degree",
    ),
    "prediction.in_graph": (
        "UPDATE prediction SET in_graph = FALSE WHERE node_key = '{node}'",
        [],
        "prediction {node} (run 2): in_graph",
    ),
    "prediction.in_graph of a node that left": (
        f"UPDATE prediction SET in_graph = TRUE WHERE node_key = '{GONE}'",
        [],
        f"prediction {GONE} (run 1): in_graph",
    ),
    "prediction.size": (
        "UPDATE prediction SET size = 9 WHERE node_key = '{node}'",
        ["UPDATE coverage SET mean_size = mean_size + 0.1 WHERE seq = 2"],
        "prediction {node} (run 2): size",
    ),
    "prediction.top_p": (
        "UPDATE prediction SET top_p = 0.5 WHERE node_key = '{node}'",
        ["UPDATE coverage SET bias = 0 WHERE seq = 2"],
        "prediction {node} (run 2): top_p",
    ),
    "prediction.top_p removed": (
        "UPDATE prediction SET top_p = NULL WHERE node_key = '{node}'",
        [],
        "prediction {node} (run 2): top_p",
    ),
    "prediction.classes": (
        "UPDATE prediction SET classes = '[]' WHERE node_key = '{node}'",
        ["UPDATE prediction SET size = 0, covered = FALSE WHERE node_key = '{node}'"],
        "run 2: its predictions",
    ),
    "prediction.p_values": (
        "UPDATE prediction SET p_values = '[1.0,1.0,1.0,1.0]' WHERE node_key = '{node}'",
        ["UPDATE prediction SET top_p = 1.0 WHERE node_key = '{node}'"],
        "run 2: its predictions",
    ),
    "prediction.scores": (
        "UPDATE prediction SET scores = '[0.0,0.0,0.0,0.0]' WHERE node_key = '{node}'",
        ["UPDATE prediction SET covered_naive = TRUE WHERE node_key = '{node}'"],
        "run 2: its predictions",
    ),
    "prediction that can't be read": (
        "UPDATE prediction SET classes = 'x' WHERE node_key = '{node}'",
        [],
        "prediction {node} (run 2): classes",
    ),
    "prediction.node_key": (
        "DELETE FROM grouping WHERE node_key = '{unknown}'; "
        "UPDATE prediction SET node_key = 's:other' WHERE node_key = '{unknown}'",
        [],
        "run 2: its predictions",
    ),
    "prediction.seq": (
        "UPDATE prediction SET seq = 3 WHERE node_key = '{node}'",
        ["UPDATE run SET n_evaluated = 41 WHERE seq = 3"],
        "run 3: its predictions",
    ),
    "prediction deleted": (
        "DELETE FROM grouping WHERE node_key = '{unknown}'; "
        "DELETE FROM prediction WHERE node_key = '{unknown}'",
        ["UPDATE run SET n_evaluated = 39 WHERE seq = 2"],
        "run 2: 39 predictions",
    ),
    "prediction inserted": (
        "INSERT INTO prediction (project, node_key, seq, size, classes, p_values, scores, degree, "
        "in_graph) SELECT project, 's:new', seq, size, classes, p_values, scores, degree, in_graph "
        "FROM prediction WHERE node_key = '{node}'",
        ["UPDATE run SET n_evaluated = 41 WHERE seq = 2"],
        "run 2: 41 predictions",
    ),
    "label.label": (
        "UPDATE label SET label = 'nobody' WHERE node_key = '{node}'",
        ["UPDATE prediction SET label = 'nobody', unseen = TRUE WHERE node_key = '{node}'"],
        "label noticed at",
    ),
    "label.covered": (
        NEXT_LABELS,
        ["UPDATE prediction SET covered = NOT covered WHERE node_key = '{node}'", RECOUNT],
        "prediction {node} (run 2): covered in its label row",
    ),
    "label.covered_naive": (
        "UPDATE label SET covered_naive = NOT covered_naive WHERE node_key = '{node}'",
        ["UPDATE prediction SET covered_naive = NOT covered_naive WHERE node_key = '{node}'"],
        "prediction {node} (run 2): covered_naive in its label row",
    ),
    "label.happened_ns": (
        "UPDATE label SET happened_ns = 5 WHERE node_key = '{node}'",
        [],
        "label noticed at",
    ),
    "label.noticed_ns": (
        "UPDATE label SET noticed_ns = noticed_ns - 1 WHERE node_key = '{node}'",
        ["UPDATE prediction SET labelled_ns = labelled_ns - 1 WHERE node_key = '{node}'"],
        "rows that no audit recorded ({node})",
    ),
    "label deleted": (
        "DELETE FROM label WHERE node_key = '{node}'",
        ["UPDATE prediction SET label = NULL, labelled_ns = NULL, covered = NULL, "
         "covered_naive = NULL, unseen = NULL WHERE node_key = '{node}'"],
        "label noticed at",
    ),
    "labels deleted": (
        "DELETE FROM label",
        ["UPDATE prediction SET label = NULL, labelled_ns = NULL, covered = NULL, "
         "covered_naive = NULL, unseen = NULL", "DELETE FROM coverage"],
        "rows are gone",
    ),
    "label inserted": (
        COPY_LABEL.replace("{shift}", " + 1"),
        ["UPDATE prediction SET label = 'mule' WHERE node_key = '{node}'"],
        "rows that no audit recorded ({node})",
    ),
    "coverage.covered": (
        RECOUNT,
        ["UPDATE prediction SET covered = TRUE WHERE seq = 2 AND label IS NOT NULL"],
        "coverage of run 2, run: coverage, covered changed",
    ),
    "coverage.verdict": (
        "UPDATE coverage SET verdict = 'kept' WHERE slice = 'total'",
        ["UPDATE coverage SET words = 'kept', p_value = 1, anytime_p = 1 WHERE slice = 'total'"],
        "coverage of run 3, total: ",
    ),
    "coverage.words": (
        "UPDATE coverage SET words = 'all is well' WHERE slice = 'run' AND seq = 1",
        [],
        "coverage of run 1, run: words changed",
    ),
    "coverage.audited_ns": (
        "UPDATE coverage SET audited_ns = audited_ns + 1 WHERE slice = 'run' AND seq = 1",
        [],
        "coverage of run 1, run: audited_ns changed",
    ),
    "coverage deleted": (
        "DELETE FROM coverage WHERE slice = 'total' AND seq = 3",
        ["DELETE FROM coverage WHERE slice = 'window' AND seq = 3"],
        "coverage of run 3, total: the row is gone",
    ),
    "coverage of a class deleted": (
        "DELETE FROM coverage WHERE slice = 'class' AND name = 'mule'",
        [],
        "coverage of run 3, class 'mule': the row is gone",
    ),
    "coverage moved": (
        "UPDATE coverage SET name = 'nobody' WHERE slice = 'class' AND name = 'mule'",
        [],
        "coverage of run 3, class 'nobody': the row was never recorded",
    ),
    "member.role swapped": (
        "UPDATE member SET role = CASE role WHEN 'train' THEN 'validation' ELSE 'train' END "
        "WHERE node_key IN ('i:-1', 'i:-51')",
        [],
        "member of sample-1: the train nodes",
    ),
    "member.class_index rotated": (
        "UPDATE member SET class_index = (class_index + 1) % 4 WHERE role = 'calibration'",
        [],
        "member of sample-1: the calibration nodes",
    ),
    "calibration cut to three": (
        "DELETE FROM member WHERE role = 'calibration' AND node_key NOT IN "
        "('i:-71', 'i:-72', 'i:-73')",
        ["UPDATE run SET n_calibration = 3, effective_calibration = 3"],
        "member of sample-1: 73 rows, but 130",
    ),
    "member exchanged": (
        "UPDATE member SET node_key = 'i:99' WHERE node_key = 'i:-71'",
        [],
        "member of sample-1: the calibration nodes",
    ),
    "model.manifest": (
        "UPDATE model SET manifest = '{}'",
        [],
        "model sample-1: its manifest",
    ),
    "model.trained_ns": (
        "UPDATE model SET trained_ns = trained_ns + 1",
        [],
        "model sample-1: trained_ns",
    ),
    "model inserted": (
        "INSERT INTO model (project, version, trained_ns, manifest) "
        "SELECT project, 'sample-2', trained_ns + 1, manifest FROM model",
        ["INSERT INTO member (project, version, node_key, role, class_index) "
         "SELECT project, 'sample-2', node_key, role, class_index FROM member"],
        "model sample-2 stands in SQL, but was never trained",
    ),
    "run.threshold": (
        "UPDATE run SET threshold = -0.5 WHERE seq = 2",
        ["UPDATE run SET threshold_node = -0.5 WHERE seq = 2"],
        "run 2: threshold",
    ),
    "run.threshold_naive": (
        "UPDATE run SET threshold_naive = 0 WHERE seq = 2",
        [],
        "run 2: threshold_naive changed",
    ),
    "run.alpha": (
        "UPDATE run SET alpha = 0.5",
        ["UPDATE coverage SET alpha = 0.5"],
        "run 1: alpha changed",
    ),
    "run.watch": ("UPDATE run SET watch = NULL WHERE seq = 3", [], "run 3: watch changed"),
    "run.token": ("UPDATE run SET token = 7 WHERE seq = 3", [], "run 3: token changed"),
    "run.applied_ns": (
        "UPDATE run SET applied_ns = 7 WHERE seq = 3",
        [],
        "run 3: applied_ns changed",
    ),
    "run.state": (
        "UPDATE run SET state = 'decided' WHERE seq = 3",
        ["UPDATE run SET applied_ns = NULL, timings = '{}' WHERE seq = 3"],
        "run 3: state is 'decided'",
    ),
    "run inserted": (
        COPY_RUN,
        ["UPDATE lease SET next_seq = 5"],
        "run 4 stands in SQL, but was never decided",
    ),
    "grouping.value": (
        "UPDATE grouping SET value = 'north' WHERE value = 'south'",
        ["DELETE FROM coverage WHERE name = 'region=south'"],
        "grouping: the groups of run 2",
    ),
    "grouping deleted": (
        "DELETE FROM grouping WHERE node_key = '{node}'",
        [],
        "grouping: the groups of run 2",
    ),
    "lease.watermark_ns": (
        "UPDATE lease SET watermark_ns = watermark_ns - 1",
        ["UPDATE run SET watermark_to_ns = watermark_to_ns - 1 WHERE seq = 3"],
        "lease: watermark_ns",
    ),
    "lease.next_seq": ("UPDATE lease SET next_seq = 9", [], "lease: next_seq is 9"),
    "lease deleted": ("DELETE FROM lease", [], "lease: the project's row is gone"),
    "alarm.state": (
        "UPDATE alarm SET state = 'ok' WHERE rule = 'coverage'",
        ["UPDATE alarm_event SET state = 'ok' WHERE rule = 'coverage'"],
        "alarm coverage: state changed",
    ),
    "alarm.state that never fired": (
        "UPDATE alarm SET state = 'no data' WHERE rule = 'unseen'",
        [],
        "alarm unseen: state changed",
    ),
    "alarm.words": (
        "UPDATE alarm SET words = 'all is well' WHERE rule = 'coverage'",
        [],
        "alarm coverage: words changed",
    ),
    "alarm.since_ns": (
        "UPDATE alarm SET since_ns = since_ns + 1 WHERE rule = 'coverage'",
        [],
        "alarm coverage: since_ns changed",
    ),
    "alarm deleted": (
        "DELETE FROM alarm WHERE rule = 'coverage'",
        ["DELETE FROM alarm_event WHERE rule = 'coverage'"],
        "alarm coverage: the row is gone",
    ),
    "alarm_event.state": (
        "UPDATE alarm_event SET state = 'ok' WHERE rule = 'coverage'",
        ["UPDATE alarm SET state = 'ok' WHERE rule = 'coverage'"],
        "alarm_event 1: state changed",
    ),
    "alarm_event.at_ns": (
        "UPDATE alarm_event SET at_ns = at_ns + 1 WHERE n = 1",
        [],
        "alarm_event 1: at_ns changed",
    ),
    "alarm_event deleted": (
        "DELETE FROM alarm_event WHERE n = 1",
        ["UPDATE alarm SET state = 'ok' WHERE rule = 'coverage'"],
        "alarm_event 1: the row is gone",
    ),
    "alarm_event inserted": (
        "INSERT INTO alarm_event (project, n, at_ns, rule, was, state, words, delivered) "
        "SELECT project, 99, at_ns, rule, 'firing', 'ok', words, '' FROM alarm_event WHERE n = 1",
        ["UPDATE alarm SET state = 'ok' WHERE rule = 'coverage'"],
        "alarm_event 99: the row was never recorded",
    ),
    "rescore.classes": (
        "UPDATE rescore SET classes = '[]'",
        [],
        "rescore at",
    ),
    "rescore.alpha": ("UPDATE rescore SET alpha = 0.5", [], "alpha changed"),
    "rescore deleted": ("DELETE FROM rescore", [], "rescore: 0 later evaluations"),
    "chain entry edited": (
        "UPDATE audit SET body = '{}' WHERE n = 3",
        [],
        "the chain is broken at entry 3",
    ),
    "chain entry deleted": (
        "DELETE FROM audit WHERE n = 3",
        ["UPDATE audit SET n = n - 1 WHERE n > 3 AND n < 5"],
        "the chain is broken at entry 3",
    ),
    "chain emptied": (
        "DELETE FROM audit",
        [],
        "run 1 stands in SQL, but was never decided",
    ),
}  # fmt: skip


CASES = [(edit, "alone") for edit in MATRIX]
CASES += [(edit, "covered up") for edit, (_, cover_up, _) in MATRIX.items() if cover_up]


@pytest.mark.parametrize(("edit", "how"), CASES)
def test_an_edit_of_the_record_is_found_and_named(sealed, edit, how):
    statement, cover_up, words = MATRIX[edit]
    node = known(sealed)
    statements = [statement, *(cover_up if how == "covered up" else ())]
    filled = [
        one.replace("{node}", node).replace("{unknown}", unknown(sealed)) for one in statements
    ]
    found = problems_after(sealed, filled)
    assert any(words.replace("{node}", node) in problem for problem in found), found


def unknown(opened):
    """The key of a node of unknown class: no label row depends on it."""
    with opened[0].reading() as connection:
        query = "SELECT node_key FROM prediction WHERE seq = 2 AND label IS NULL ORDER BY node_key"
        return connection.execute(text(query)).scalars().first()


def problems_of(store, settings):
    key = chain_key(None, settings.engine.folder)
    with record_snapshot(store, "p") as reader:
        return list(find_edits(reader, reader.record(key)))


def test_an_untouched_record_has_no_problem(sealed):
    assert problems_of(*sealed) == []


def test_the_matrix_is_not_smaller_than_it_says():
    assert len(MATRIX) >= 40
    assert sum(bool(cover_up) for _, cover_up, _ in MATRIX.values()) >= 25


ADDED = {
    "decided": ("degrees", "token"),
    "trained": ("member_digests", "trained_ns"),
    "classes": ("rows",),
    "audited": ("gone",),
    "rescored": ("rescored_ns", "model", "alpha"),
    "alarm": ("event", "event_ns"),
}


def append_as_before(connection, project_, key, kind, facts, *, append=chain.append):
    """Seal what versions up to 0.4 sealed."""
    if kind in ("applied", "gone", "alarms", "grouped"):
        return ""
    if kind == "alarm" and "firing" not in (facts["was"], facts["state"]):
        return ""
    if kind == "audited" and not facts["coverage"]:
        return ""
    kept = {name: value for name, value in facts.items() if name not in ADDED[kind]}
    return append(connection, project_, key, kind, kept)


@pytest.fixture(params=ENGINES)
def older(request, tmp_path):
    with project(request, tmp_path, request.param, append_as_before) as opened:
        yield opened


def test_a_record_of_an_older_version_is_clean_and_goes_on(older):
    store, settings = older
    assert problems_of(store, settings) == []
    for edit in ("coverage.covered", "label.label", "every prediction.covered", "alarm.state",
                 "calibration cut to three", "lease.watermark_ns"):  # fmt: skip
        statement = MATRIX[edit][0].replace("{node}", known(older))
        assert problems_after(older, [statement]), edit
    with writing(store, settings) as writer:
        go_on(store, settings, writer)
    assert problems_of(store, settings) == []
    assert problems_after(older, ["UPDATE prediction SET degree = 99 WHERE seq = 4"])


def go_on(store, settings, writer):
    """One more run by this version: sets, a class, a node that left, coverage, alarms."""
    sets = [some_set(f"s:account 4-{i}") for i in range(9)]
    facts = runs.one_run(store, "p", 3)
    columns = {name: getattr(facts, name) for name in runs.RunFacts.__dataclass_fields__}
    columns |= {"n_evaluated": 9, "watermark_to_ns": facts.watermark_to_ns + 1}
    seq = runs.decide(writer, Decision(runs.RunFacts(**columns), sets, []))
    runs.close_run(writer, seq, [sets[8].node_key], {})
    judged = [
        labels.judge(
            OpenPrediction(one.node_key, dumps(one.classes), dumps(one.scores), None, None, ""),
            KnownClass("retail"),
            PLAN.classes,
        )
        for one in sets[:4]
    ]
    labels.record_labels(writer, [])
    labels.record_labels(writer, [judged_ for judged_ in judged if judged_.covered_naive])
    coverage.record_coverage(writer, count_coverage(store, settings))
    raise_alarms(writer, settings)


def test_entries_are_canonical_json(sealed):
    with sealed[0].reading() as connection:
        for body in connection.execute(text("SELECT body FROM audit")).scalars():
            assert dumps(json.loads(body)) == body
