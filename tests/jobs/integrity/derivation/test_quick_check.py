"""`verify --quick` names every line of the matrix but those that it leaves to the whole."""

import pytest
from sqlalchemy import text

from ringfence.connector.store.audit_chain.integrity import RecordReader, record_snapshot
from ringfence.connector.store.chain import chain_key
from ringfence.jobs.integrity.derivation.quick_check import find_quick_edits
from ringfence.jobs.project.audit_store import key_source
from tests.jobs.integrity.sample_record import drop_triggers, project
from tests.jobs.integrity.sql_edits import SQL_EDITS
from tests.jobs.integrity.test_tampering import known, unknown

LEFT = (
    "worklist_entry", "mark", "prediction.created_ns", "prediction.evidence",
    "prediction.in_graph", "prediction.top_p", "rescore",
)  # fmt: skip
"""Tables and columns that it does not compare."""

POSTGRESQL = pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.long])


@pytest.fixture(params=["sqlite", POSTGRESQL])
def sealed(request, tmp_path):
    with project(request, tmp_path, request.param) as opened:
        yield opened


def is_named(opened, statement):
    """Whether an edit is found, which is rolled back."""
    store, settings = opened
    with store.engine.connect() as connection:
        for part in statement.split("; "):
            if " audit" in part:
                drop_triggers(connection)
            connection.execute(text(part.replace(":", r"\:")))
        reader = RecordReader(connection, "p", chain_key(None, settings.engine.folder))
        problems = list(find_quick_edits(reader, reader.record()))
        connection.rollback()
    return bool(problems)


def test_what_it_leaves_to_the_whole_is_listed(sealed):
    store, settings = sealed
    with record_snapshot(store, "p", key_source(settings)) as reader:
        assert list(find_quick_edits(reader, reader.record())) == []
    nodes = {"{node}": known(sealed), "{unknown}": unknown(sealed)}
    missed = set()
    for name, (statement, *_) in SQL_EDITS.items():
        for mark, node in nodes.items():
            statement = statement.replace(mark, node)
        if not is_named(sealed, statement):
            missed.add(name)
    assert missed == {name for name in SQL_EDITS if name.split()[0].startswith(LEFT)}
