"""Whoever can write SQL, without the chain's key: every edit is found and named.

One project per engine; an edit is made in a transaction, looked for in it, and rolled back.
"""

import importlib
import json

import pytest
from sqlalchemy import text

from ringfence.connector.records import KnownClass
from ringfence.connector.store import coverage, labels, runs
from ringfence.connector.store.audit_chain.integrity import RecordReader, record_snapshot
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.labels import OpenPrediction
from ringfence.connector.store.runs import Decision
from ringfence.jobs.auditing.alarms.state import raise_alarms
from ringfence.jobs.auditing.audit import count_coverage
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.project.audit_store import key_source
from tests.jobs.integrity.sample_record import (
    ENGINES,
    PLAN,
    append_of_an_older_version,
    drop_triggers,
    project,
    some_set,
    writing,
)
from tests.jobs.integrity.sql_edits import SQL_EDITS


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
        reader = RecordReader(connection, "p", chain_key(None, settings.engine.folder))
        found = list(find_edits(reader, reader.record()))
        connection.rollback()
    return found


def known(opened):
    """The key of a node of known class, out of the middle."""
    with opened[0].reading() as connection:
        query = "SELECT node_key FROM label WHERE node_key LIKE 's:account 2-%' ORDER BY node_key"
        return connection.execute(text(query.replace(":", r"\:"))).scalars().all()[3]


CASES = [(edit, "alone") for edit in SQL_EDITS]
CASES += [(edit, "covered up") for edit, (_, cover_up, _) in SQL_EDITS.items() if cover_up]


@pytest.mark.parametrize(("edit", "how"), CASES)
def test_an_edit_of_the_record_is_found_and_named(sealed, edit, how):
    statement, cover_up, words = SQL_EDITS[edit]
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
    with record_snapshot(store, "p", key_source(settings)) as reader:
        return list(find_edits(reader, reader.record()))


def test_an_untouched_record_has_no_problem(sealed):
    assert problems_of(*sealed) == []


def test_the_matrix_is_not_smaller_than_it_says():
    assert len(SQL_EDITS) >= 40
    assert sum(bool(cover_up) for _, cover_up, _ in SQL_EDITS.values()) >= 25


ADDED = {
    "decided": ("degrees", "token"),
    "trained": ("member_digests", "trained_ns", "state", "activation"),
    "classes": ("rows",),
    "audited": ("gone",),
    "rescored": ("rescored_ns", "model", "alpha"),
    "alarm": ("event", "event_ns"),
}


def append_as_before(connection, project_, key, kind, facts, *, append=append_of_an_older_version):
    """Seal what versions up to 0.4 sealed."""
    dropped = ("applied", "gone", "alarms", "grouped", "marked", "activated")
    if kind not in ADDED and kind not in dropped:
        return append(connection, project_, key, kind, facts)
    if kind in dropped:
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
        as_migrated(opened[0])
        yield opened


def as_migrated(store):
    """Bring the rows about versions in use to what a migration makes of an older store."""
    with store.transaction() as connection:
        connection.execute(text("DELETE FROM activation"))
        connection.execute(text(revision_of_states().IN_USE_SINCE_TRAINING))


def revision_of_states():
    return importlib.import_module("ringfence.migrations.sql.versions.0012_activations")


def test_a_record_of_an_older_version_is_clean_and_goes_on(older):
    store, settings = older
    assert problems_of(store, settings) == []
    for edit in ("coverage.covered", "label.label", "every prediction.covered", "alarm.state",
                 "calibration cut to three", "lease.watermark_ns"):  # fmt: skip
        statement = SQL_EDITS[edit][0].replace("{node}", known(older))
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
        labels.check_label(
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
