"""A server that goes away and comes back in the middle of a run."""

import threading
import time

import pytest

from ringfence.connector import embedded
from ringfence.connector.errors import GraphError, ServerError
from ringfence.connector.graph import connect
from ringfence.jobs.patience import patiently


def test_reading_goes_on_after_the_server_was_away(tmp_path):
    """The same port, the same data: a read that began before the restart ends after it."""
    with embedded.running(tmp_path / "neo4j") as server:
        graph = connect(server.uri, server.user, server.password)
        graph.run("CREATE (:Kept {id: 1})")
        embedded.stop(tmp_path / "neo4j")
        with pytest.raises(ServerError):
            patiently("control", lambda: list(graph.stream("MATCH (n:Kept) RETURN n.id", 1)), 0.0)

        def come_back():
            time.sleep(1)
            embedded.start(tmp_path / "neo4j", attached=True)

        starting = threading.Thread(target=come_back)
        starting.start()
        rows = patiently("test", lambda: list(graph.stream("MATCH (n:Kept) RETURN n.id AS id", 1)))
        starting.join()
        assert [row["id"] for row in rows] == [1]
        graph.close()
    embedded.stop(tmp_path / "neo4j")


def test_other_errors_are_not_waited_for():
    calls = []

    def refuse():
        calls.append(1)
        raise GraphError(found="no such label")

    with pytest.raises(GraphError):
        patiently("test", refuse)
    assert len(calls) == 1
