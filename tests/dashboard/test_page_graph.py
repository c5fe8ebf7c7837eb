"""Pages whose server is stopped, frozen or started again: they answer with what SQL knows."""

import logging
import os
import signal
import threading

import pytest
from neo4j import GraphDatabase

from ringfence.connector.neo4j import driver, embedded
from ringfence.connector.neo4j.access.driver_log import describe_record
from ringfence.connector.neo4j.driver import RETRY_SECONDS, connect
from ringfence.jobs.config.load import load_values
from ringfence.jobs.dashboard.page_graph import MAX_QUESTIONS, PAGE_SECONDS, PageGraph
from ringfence.jobs.samples.audit_store import Plan
from tests.dashboard.conftest import open_site
from tests.faults.proxy import Cut, Proxy
from tests.patience import PATIENCE_SECONDS, wait_until

SENTENCE = "The graph gave no answer within two seconds, so this page shows what the audit store"


@pytest.fixture
def given_timeouts(monkeypatch):
    """What drivers are made with, by the names of their options."""
    given = []
    make = GraphDatabase.driver

    def make_and_note(uri, **options):
        given.append(options)
        return make(uri, **options)

    monkeypatch.setattr(driver.GraphDatabase, "driver", make_and_note)
    return given


def timeouts(options):
    names = ("max_transaction_retry_time", "connection_acquisition_timeout", "connection_timeout")
    return tuple(options[name] for name in names)


def test_a_run_waits_for_a_restart_and_a_page_does_not(graph, given_timeouts):
    connect(graph.uri, *graph.auth).close()
    opened = connect(graph.uri, *graph.auth, retry_seconds=PAGE_SECONDS)
    opened.close()
    assert [timeouts(options) for options in given_timeouts] == [(180, 60, 30), (2, 2, 2)]
    assert (opened.retry_seconds, RETRY_SECONDS) == (2, 180)


@pytest.fixture
def own_server(tmp_path):
    """Settings of a dashboard whose embedded server this test may hurt."""
    values = {
        "project": "payments",
        "neo4j": {"uri": "embedded"},
        "graph": {
            "label": "Account",
            "key": "id",
            "features": "features",
            "class_property": "kind",
            "relationships": [{"type": "SENT"}],
        },
    }
    settings = load_values(values, tmp_path / "ringfence.toml", {})
    home = settings.engine.folder / "neo4j"
    embedded.start(home, attached=True)
    yield settings, home
    if embedded.find_running(home):
        embedded.stop(home)


@pytest.mark.neo4j
@pytest.mark.long
def test_pages_answer_while_the_server_is_frozen_and_while_it_is_gone(own_server, given_timeouts):
    settings, home = own_server
    with open_site(settings, Plan(runs=2, per_run=20)) as site:
        addresses = (site.node_path, site.node_path.replace("/node", "/why"))

        def texts():
            answers = [site.ask(address) for address in addresses]
            assert [answer.status for answer in answers] == [200, 200]
            return [answer.body.decode() for answer in answers]

        def shows_neighbours():
            return "No neighbours." in site.ask(site.node_path).body.decode()

        wait_until(shows_neighbours, "an answer of the graph in time")
        server = embedded.status(home).server.pid
        os.kill(server, signal.SIGSTOP)
        node, why = texts()
        assert SENTENCE in node
        assert "gave no answer within two seconds" in why
        os.kill(server, signal.SIGCONT)
        wait_until(shows_neighbours, "an answer after the server went on")
        os.kill(embedded.status(home).server.pid, signal.SIGKILL)
        wait_until(lambda: embedded.find_running(home) is None, "the server's end")
        node, why = texts()
        assert SENTENCE in node
        assert "ringfence neo4j start" in why
        assert embedded.find_running(home) is None  # no page has started it
        embedded.start(home, attached=True)
        wait_until(shows_neighbours, "an answer of the server that was started again")
        assert {timeouts(options) for options in given_timeouts} == {(2, 2, 2)}
        site.dashboard.close()


@pytest.mark.long
def test_more_questions_than_may_wait_get_no_answer_and_no_thread(graph, settings_in, tmp_path):
    user, password = graph.auth
    values = settings_in(tmp_path).model_dump(include={"project", "graph"}, exclude_unset=True)
    values["neo4j"] = {"uri": graph.uri, "user": user}
    environment = {"RINGFENCE_NEO4J_PASSWORD": password}
    settings = load_values(values, tmp_path / "ringfence.toml", environment)
    pages, gate = PageGraph(settings, seconds=PATIENCE_SECONDS), threading.Event()
    assert pages.ask(lambda opened: opened.read("RETURN 1 AS n")[0]["n"]) == 1
    pages.seconds = 0.01
    answers = [pages.ask(lambda _: gate.wait()) for _ in range(MAX_QUESTIONS + 3)]
    waiting = [thread for thread in threading.enumerate() if thread.name == "ringfence-page-graph"]
    assert (set(answers), len(waiting)) == ({None}, MAX_QUESTIONS)
    gate.set()
    for thread in waiting:
        thread.join()
    pages.seconds = PATIENCE_SECONDS
    assert pages.ask(lambda opened: opened.read("RETURN 2 AS n")[0]["n"]) == 2
    pages.close()


@pytest.mark.parametrize(
    ("message", "arguments", "told"),
    [
        (
            "Transaction failed and will be retried in %ss (%s)",
            (1.0471, "Couldn't connect to 10.1.2.3:7687 'DE44 5001 0517'"),
            "Neo4j gave no answer; asked again in 1.0 s",
        ),
        (
            "Auto-commit transaction failed and will be retried (%s)",
            ("secret",),
            "Neo4j gave no answer; asked again",
        ),
        ("[#%04X]  _: <CONNECTION> error: %r", (7, "secret"), "the connection to Neo4j broke"),
    ],
)
def test_lines_of_the_driver_are_plain_words(message, arguments, told, caplog):
    record = logging.LogRecord("neo4j.io", logging.WARNING, "", 0, message, arguments, None)
    assert describe_record(record) == told
    logging.getLogger("neo4j.session").warning(message, *arguments)
    assert [record.getMessage() for record in caplog.records] == [told]


def test_retries_of_the_real_driver_are_logged_in_plain_words(graph, caplog):
    proxy = Proxy(int(graph.uri.rpartition(":")[2]))
    opened = connect(f"bolt://127.0.0.1:{proxy.port}", *graph.auth)
    proxy.arm(Cut("portion", 1))
    assert opened.read("RETURN 1 AS n")[0]["n"] == 1
    opened.close()
    proxy.close()
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("neo4j")]
    assert proxy.cuts == 1
    assert any(line.startswith("Neo4j gave no answer; asked again in") for line in lines)
    assert {line.partition(";")[0] for line in lines} <= {
        "Neo4j gave no answer",
        "the connection to Neo4j broke",
    }
