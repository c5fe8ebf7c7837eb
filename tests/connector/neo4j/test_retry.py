"""A server that goes away and comes back in the middle of a run."""

import threading
import time

import pytest

from ringfence.connector.errors import GraphError, ServerError
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.retry import retry_while_unavailable
from tests.patience import PATIENCE_SECONDS


@pytest.mark.long  # the fault harness in make test cuts and kills, too
@pytest.mark.neo4j
def test_reading_goes_on_after_the_server_was_away(tmp_path):
    """The same port, the same data: a read that began before the restart ends after it."""
    with embedded.running(tmp_path / "neo4j") as server:
        graph = connect(server.uri, server.user, server.password)
        graph.run("CREATE (:Kept {id: 1})")
        embedded.stop(tmp_path / "neo4j")
        with pytest.raises(ServerError):
            retry_while_unavailable(
                "control", lambda: list(graph.stream("MATCH (n:Kept) RETURN n.id", 1)), 0.0
            )

        def come_back():
            time.sleep(1)
            embedded.start(tmp_path / "neo4j", attached=True)

        starting = threading.Thread(target=come_back)
        starting.start()
        rows = retry_while_unavailable(
            "test",
            lambda: list(graph.stream("MATCH (n:Kept) RETURN n.id AS id", 1)),
            PATIENCE_SECONDS,
        )
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
        retry_while_unavailable("test", refuse)
    assert len(calls) == 1
