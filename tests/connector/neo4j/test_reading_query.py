"""Queries that people type: reading ones run, what would change the server does not."""

import pytest

from ringfence.connector.errors import GraphError
from ringfence.connector.neo4j.reading_query import run_reading_query

READING = (
    "RETURN 1 AS n",
    "MATCH (n) RETURN count(n) AS n",
    "CALL db.labels()",
    "CALL db.info() YIELD name RETURN name",
    "CALL dbms.components()",
    "SHOW TRANSACTIONS",
    "SHOW PROCEDURES YIELD name RETURN count(name) AS n",
    "SHOW INDEXES",
    "// which are there\nSHOW DATABASES",
    "PROFILE RETURN 1 AS n",
    "EXPLAIN RETURN 1 AS n",
    "CYPHER 25 PROFILE RETURN 1 AS n",
    "RETURN 'TERMINATE TRANSACTIONS, CALL db.clearQueryCaches()' AS text",
)
CHANGING = {
    "TERMINATE TRANSACTIONS 'neo4j-transaction-1'": "TERMINATE TRANSACTIONS",
    "/* SHOW */ terminate transaction 'neo4j-transaction-1'": "TERMINATE TRANSACTIONS",
    "SHOW TRANSACTIONS YIELD transactionId AS id TERMINATE TRANSACTIONS id YIELD message "
    "RETURN message": "TERMINATE TRANSACTIONS",
    "CALL db.clearQueryCaches()": "CALL db.clearQueryCaches",
    "PROFILE CALL db.clearQueryCaches()": "CALL db.clearQueryCaches",
    "CALL () { CALL `db`.clearQueryCaches() YIELD value RETURN value } RETURN value": "CALL db",
    "CALL db.prepareForReplanning()": "CALL db.prepareForReplanning",
    "CALL db.stats.clear('QUERIES')": "CALL db.stats.clear",
    "CALL dbms.killConnection('bolt-1')": "CALL dbms.killConnection",
    "CALL tx.setMetaData({a: 1})": "CALL tx.setMetaData",
    "ALTER CURRENT USER SET PASSWORD FROM 'a' TO 'b'": "an administration command",
}


@pytest.mark.parametrize("query", READING)
def test_a_reading_query_runs(connected, query):
    assert isinstance(run_reading_query(connected, query), list)


@pytest.mark.parametrize("query", CHANGING)
def test_what_changes_the_server_is_no_reading_query(connected, query):
    with pytest.raises(GraphError) as refused:
        run_reading_query(connected, query)
    assert refused.value.found.startswith(CHANGING[query])
    assert refused.value.found.endswith("is no reading query")
    assert refused.value.needed
    assert refused.value.next_step


def test_writes_are_refused_as_before(connected):
    with pytest.raises(GraphError, match="refused a statement"):
        run_reading_query(connected, "CREATE (n) RETURN n")
    assert connected.read("MATCH (n) RETURN count(n) AS n")[0]["n"] == 0


def test_nobodys_transaction_is_ended(connected, graph):
    """The control: sent as it is, the same statement ends it."""
    ending = (
        "SHOW TRANSACTIONS YIELD transactionId AS id, currentQuery, metaData "
        "WHERE metaData.owner = 'another' TERMINATE TRANSACTIONS id YIELD message RETURN message"
    )
    with (
        graph.driver.session() as session,
        session.begin_transaction(metadata={"owner": "another"}) as other,
    ):
        other.run("RETURN 1").consume()
        with pytest.raises(GraphError, match="no reading query"):
            run_reading_query(connected, ending)
        assert other.run("RETURN 2 AS n").single()["n"] == 2
        assert len(connected.read(ending)) == 1
        other.close()
