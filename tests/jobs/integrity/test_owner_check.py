"""Rows without an owner: no prediction, no entry of the chain, no number that counts."""

import pytest

from tests.jobs.integrity.sample_record import ENGINES, append_of_an_older_version, project
from tests.jobs.integrity.test_tampering import problems_after, problems_of

UNCHECKED = {
    "sqlite": "PRAGMA defer_foreign_keys = ON",
    "postgresql": "SET LOCAL session_replication_role = replica",
}
"""How whoever may change SQL gets past the references."""

ROWS = {
    "grouping": (
        "INSERT INTO grouping (project, node_key, property, value) "
        "VALUES ('p', 's:nobody', 'region', 'north')",
        "grouping: 1 rows of nodes that no prediction stands for",
    ),
    "shadow_set": (
        "INSERT INTO shadow_set (project, version, node_key, seq, size, classes, p_values, covered)"
        " VALUES ('p', 'sample-2', 's:nobody', 2, 1, '[\"mule\"]', '[1.0]', TRUE)",
        "shadow_set: 1 rows of nodes that no prediction stands for",
    ),
    "first_seen": (
        "INSERT INTO first_seen (project, node_key, seen_ns) VALUES ('p', 's:account 1-5', 5)",
        "first_seen: 1 rows, but no run recorded one",
    ),
    "alarm_event 0": (
        "INSERT INTO alarm_event (project, n, at_ns, rule, was, state, words, delivered) "
        "SELECT project, 0, at_ns, 'unseen', 'ok', 'no data', words, '' FROM alarm_event "
        "WHERE n = 1",
        "alarm_event 0: the row was never recorded",
    ),
    "alarm_event below zero": (
        "INSERT INTO alarm_event (project, n, at_ns, rule, was, state, words, delivered) "
        "SELECT project, -7, at_ns, 'unseen', 'ok', 'no data', words, '' FROM alarm_event "
        "WHERE n = 1",
        "alarm_event -7: the row was never recorded",
    ),
}


@pytest.fixture(scope="module", params=ENGINES)
def sealed(request, tmp_path_factory):
    with project(request, tmp_path_factory.mktemp("owners"), request.param) as opened:
        yield opened


@pytest.mark.parametrize("table", ROWS)
def test_a_row_without_an_owner_is_named(sealed, table):
    statement, words = ROWS[table]
    unchecked = UNCHECKED[sealed[0].engine.dialect.name]
    problems = problems_after(sealed, [unchecked, statement])
    assert any(words in problem for problem in problems), problems


def test_an_untouched_record_has_no_such_row(sealed):
    assert problems_of(*sealed) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_chain_that_an_older_version_began_is_not_blamed(request, tmp_path, engine):
    """It sealed no first sightings: rows that stand there may be its own."""
    with project(request, tmp_path, engine, append_of_an_older_version) as opened:
        assert problems_after(opened, [ROWS["first_seen"][0]]) == []
