"""A verification since a checkpoint names the matrix: all that is new, and all that was drawn."""

import pytest
from sqlalchemy import text

from ringfence.connector.store.audit_chain.integrity import RecordReader
from ringfence.connector.store.chain import chain_key
from ringfence.jobs.integrity.checkpoint.draw import Sample, draw
from ringfence.jobs.integrity.checkpoint.part_check import find_part_edits
from ringfence.jobs.integrity.checkpoint.scope import scope_since
from tests.jobs.integrity.later_edits import LATER_EDITS
from tests.jobs.integrity.sample_record import drop_triggers, project
from tests.jobs.integrity.sql_edits import SQL_EDITS
from tests.jobs.integrity.test_later_tables import later_record
from tests.jobs.integrity.test_tampering import known, unknown

POSTGRESQL = pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.long])
ENGINES = ["sqlite", POSTGRESQL]

NOBODYS = {"worklist_entry of nobody"}
"""Rows that neither a run nor an entry names: left to the full verification."""

OTHER_WORDS = {"first_seen.seen_ns": "first_seen at 10: 1 rows, but 2 were recorded"}
"""A time that nobody sealed is not looked for: its node is missed where it was."""


@pytest.fixture(params=ENGINES)
def sealed(request, tmp_path):
    with project(request, tmp_path, request.param) as opened:
        yield opened


@pytest.fixture(params=ENGINES)
def later(request, tmp_path):
    with later_record(request, tmp_path, request.param) as opened:
        yield opened


def problems_in(connection, settings, since, drawn):
    """What a verification since an entry says; None as `since` is the newest entry."""
    reader = RecordReader(connection, "p", chain_key(None, settings.engine.folder))
    record = reader.record()
    after = len(record.entries) if since is None else since
    scope = scope_since(record, after)
    older = {
        body["run"]["seq"]: body["run"]["n_evaluated"]
        for body in record.bodies("decided")
        if body["run"]["seq"] not in scope.runs
    }
    sample = draw(older, sum(older.values()) if drawn else 0, reader.key, "nonce")
    return list(find_part_edits(reader, record, scope, sample))


def missed_of(opened, edits, since, drawn):
    """The edits whose words no problem has; each is rolled back."""
    store, settings = opened
    nodes = {"{node}": known(opened), "{unknown}": unknown(opened)}
    missed = set()
    for name, (statement, _, words) in edits.items():
        for mark, node in nodes.items():
            statement, words = statement.replace(mark, node), words.replace(mark, node)
        with store.engine.connect() as connection:
            for part in statement.split("; "):
                if " audit" in part:
                    drop_triggers(connection)
                connection.execute(text(part.replace(":", r"\:")))
            problems = problems_in(connection, settings, since, drawn)
            connection.rollback()
        if not any(words in problem for problem in problems):
            missed.add(name)
    return missed


def test_what_came_since_a_checkpoint_is_named_in_full(sealed):
    with sealed[0].reading() as connection:
        assert problems_in(connection, sealed[1], 0, drawn=False) == []
    assert missed_of(sealed, SQL_EDITS, 0, drawn=False) == NOBODYS


def test_a_drawn_run_is_compared_as_a_new_one(sealed):
    with sealed[0].reading() as connection:
        assert problems_in(connection, sealed[1], None, drawn=True) == []
    assert missed_of(sealed, SQL_EDITS, None, drawn=True) == NOBODYS


def test_later_tables_are_named_too(later):
    edits = LATER_EDITS | {
        name: (*LATER_EDITS[name][:2], words) for name, words in OTHER_WORDS.items()
    }
    assert missed_of(later, edits, 0, drawn=False) == set()
    assert missed_of(later, edits, None, drawn=True) == set()


def test_older_rows_are_not_read_where_nothing_is_drawn(sealed):
    """The control: without a sample an edit of an older prediction stays unnoticed here."""
    edit = {"prediction": SQL_EDITS["prediction.size below zero"]}
    assert missed_of(sealed, edit, None, drawn=False) == {"prediction"}
    assert missed_of(sealed, edit, None, drawn=True) == set()
    assert missed_of(sealed, {"run": SQL_EDITS["run.threshold"]}, None, drawn=False) == set()


def test_a_class_that_became_known_later_is_compared_in_an_older_run(sealed):
    """The checkpoint stands between the runs and the audit that noticed the classes."""
    store, settings = sealed
    with store.reading() as connection:
        reader = RecordReader(connection, "p", chain_key(None, settings.engine.folder))
        record = reader.record()
    noticed = [entry.n for entry in record.entries if entry.kind == "classes"]
    before = noticed[-1] - 1
    scope = scope_since(record, before)
    assert 2 not in scope.runs or 1 not in scope.runs
    edit = {
        "covered": (
            "UPDATE prediction SET covered = NOT covered WHERE labelled_ns = "
            "(SELECT max(noticed_ns) FROM label)",
            [],
            "covered is not as recorded",
        )
    }
    assert missed_of(sealed, edit, before, drawn=False) == set()


def test_a_sample_without_runs_draws_nothing_else():
    assert Sample((), 10, 0, "nonce").share(7) == 0
    assert Sample((1,), 10, 0, "nonce").share(7) == 1
