"""The driver's exceptions become found, needed, next."""

import subprocess
import sys

import pytest
from neo4j.exceptions import Neo4jError

from ringfence.connector.errors import GraphError
from ringfence.connector.neo4j.driver import connect


@pytest.fixture
def opened(graph):
    one = connect(graph.uri, *graph.auth)
    yield one
    one.close()


def test_a_statement_that_is_refused_half_way_through_a_stream_names_the_refusal(opened):
    with pytest.raises(GraphError, match="Neo4j refused a statement"):
        list(opened.stream("UNWIND range(3, 0, -1) AS i RETURN 6 / i AS part", 2))


def test_a_result_that_fails_with_another_one_names_the_refusal(opened):
    """The driver may raise ResultFailedError when the transaction ends, not the refusal itself."""
    with pytest.raises(GraphError, match="Neo4j refused a statement"):
        _fail_a_result_with_another(opened)


def _fail_a_result_with_another(opened):
    with opened._session(fetch_size=2) as session, session.begin_transaction() as transaction:
        rows = transaction.run("UNWIND range(1, 100) AS i RETURN i")
        with pytest.raises(Neo4jError):
            transaction.run("RETURN 1 / 0").consume()
        list(rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "with_pandas"), [("import ringfence.connector.neo4j.bolt", False), ("pass", True)]
)
def test_the_driver_is_imported_without_pandas_which_is_there_afterwards(first, with_pandas):
    """The second case is the control: by itself the driver brings pandas along."""
    code = f"{first}\nimport sys, neo4j\nprint('pandas' in sys.modules)\nimport pandas, pyarrow"
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == str(with_pandas)
