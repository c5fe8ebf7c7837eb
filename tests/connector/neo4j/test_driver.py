"""The driver's exceptions become found, needed, next."""

import re
import subprocess
import sys

import pytest
from neo4j.exceptions import Neo4jError

from ringfence.connector.errors import GraphError
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read.watermark import horizon
from tests.faults.proxy import Proxy


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


BEGIN = b"\xb1\x11"  # Bolt: a structure of one field, the BEGIN message
BOOKMARK = re.compile(rb"FB:[A-Za-z0-9+/=_-]+")
READING = re.compile(rb"\x84mode\x81r")


@pytest.fixture
def recorder(graph):
    proxy = Proxy(int(graph.uri.rpartition(":")[2]))
    proxy.heard = []
    yield proxy
    proxy.close()


def begins(heard):
    """The BEGIN messages that passed, each with the bookmark that the server had sent last."""
    newest, found = b"", []
    for sender, data in heard:
        if sender == "server" and (marks := BOOKMARK.findall(data)):
            newest = marks[-1]
        if sender == "client" and BEGIN in data:
            found.append((newest, data[data.index(BEGIN) :]))
    return found


def ask_through(recorder, graph, scheme):
    opened = connect(f"{scheme}://127.0.0.1:{recorder.port}", *graph.auth)
    try:
        opened.run("CREATE (:Thing)")
        del recorder.heard[:-1]  # the answer to COMMIT stays
        opened.read("MATCH (n:Thing) RETURN count(n) AS n")
        (newest, message), *_ = begins(recorder.heard)
        assert opened.rights  # what the user may do is asked once, of any server
        recorder.heard.clear()
        horizon(opened)
        return newest, message, [one for _, one in begins(recorder.heard)]
    finally:
        opened.close()


def test_a_read_in_a_cluster_carries_the_bookmark_of_the_last_write(recorder, graph):
    newest, message, clocks = ask_through(recorder, graph, "neo4j")
    assert newest
    assert newest in message
    assert READING.search(message)
    assert clocks
    assert not any(READING.search(one) for one in clocks)  # the leader says what time it is


def test_one_server_needs_no_bookmarks(recorder, graph):
    """The negative control: without routing the same read carries none."""
    newest, message, clocks = ask_through(recorder, graph, "bolt")
    assert newest
    assert newest not in message
    assert all(READING.search(one) for one in clocks)


def test_a_stream_is_one_message_with_its_bookmark_and_waits_for_no_begin(recorder, graph):
    """Two threads that begin transactions at the same time may wait for an answer for ever."""
    opened = connect(f"neo4j://127.0.0.1:{recorder.port}", *graph.auth)
    try:
        opened.run("CREATE (:Thing)")
        newest = BOOKMARK.findall(recorder.heard[-1][1])[-1]
        recorder.heard.clear()
        assert len(list(opened.stream("MATCH (n:Thing) RETURN n.id AS id", 2))) == 1
        sent = b"".join(data for sender, data in recorder.heard if sender == "client")
        assert not begins(recorder.heard)
        assert newest in sent
        assert READING.search(sent)
    finally:
        opened.close()
