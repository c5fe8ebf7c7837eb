"""The schema of a store against the migrations: views, triggers, indexes, and values' types."""

from contextlib import ExitStack
from functools import cache

import pytest
from sqlalchemy import text

from ringfence.connector.errors import StoreError
from ringfence.connector.store.audit_chain.integrity import RecordReader
from ringfence.connector.store.chain import chain_key
from ringfence.jobs.integrity.structure.schema_check import find_schema_edits, require_tables
from tests.jobs.integrity.sample_record import ENGINES, project
from tests.jobs.integrity.schema_edits import EDITS_BY_ENGINE
from tests.jobs.integrity.test_tampering import problems_after, problems_of

EDITS = [
    pytest.param(
        engine, edit, id=f"{engine}-{edit}",
        marks=[pytest.mark.postgres] if engine == "postgresql" else [],
    )
    for engine, edits in EDITS_BY_ENGINE.items()
    for edit in edits
]  # fmt: skip


@pytest.fixture(scope="module")
def opened(request, tmp_path_factory):
    """A sealed record on each engine, made when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def open_on(engine):
            made = project(request, tmp_path_factory.mktemp("schema"), engine)
            return stack.enter_context(made)

        yield open_on


@pytest.mark.parametrize("engine", ENGINES)
def test_migrations_make_what_the_comparison_expects(opened, engine):
    """Views, triggers, indexes and columns: the lists in the code are those of the revisions."""
    assert problems_of(*opened(engine)) == []


@pytest.mark.parametrize(("engine", "edit"), EDITS)
def test_an_edit_of_the_schema_is_found_and_named(opened, engine, edit):
    statements, words = EDITS_BY_ENGINE[engine][edit]
    problems = schema_problems_after(*opened(engine), statements)
    assert any(words in problem for problem in problems), problems


def schema_problems_after(store, settings, statements):
    """What the check says after statements that are rolled back."""
    with store.engine.connect() as connection:
        for statement in statements.split("; "):
            connection.execute(text(statement))
        reader = RecordReader(connection, "p", chain_key(None, settings.engine.folder))
        problems = list(find_schema_edits(reader, None))
        connection.rollback()
    return problems


def test_verify_runs_the_check(opened):
    store, settings = opened("sqlite")
    problems = problems_after((store, settings), ["DROP VIEW ringfence_run"])
    assert problems == ["the schema: the view ringfence_run is gone"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("edit", ["table dropped", "column dropped"])
def test_verify_ends_in_words_where_tables_are_gone(request, tmp_path, engine, edit):
    statements, words = EDITS_BY_ENGINE[engine][edit]
    with project(request, tmp_path, engine) as (store, _):
        require_tables(store)
        with store.transaction() as connection:
            connection.execute(text(statements))
        with pytest.raises(StoreError) as refused:
            require_tables(store)
    assert words in refused.value.found
    assert refused.value.next_step


@pytest.mark.parametrize("engine", ENGINES)
def test_other_tables_and_plain_indexes_of_an_operator_are_no_finding(opened, engine):
    theirs = [
        "CREATE TABLE dashboards (id INTEGER)",
        "CREATE VIEW mine AS SELECT project, seq FROM run",
        "CREATE INDEX mine_too ON run (project, model)",
    ]
    assert problems_after(opened(engine), theirs) == []
