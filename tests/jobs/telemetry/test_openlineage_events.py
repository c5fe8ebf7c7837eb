"""`score` and `audit` as OpenLineage events, as a receiver gets them, against its schema."""

import http.server
import json
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from uuid import UUID

import pytest

from ringfence.jobs.config.load import load_values
from ringfence.jobs.telemetry import openlineage_events
from ringfence.jobs.telemetry.openlineage_events import NOT_INSTALLED, send_lineage
from ringfence.jobs.telemetry.run_id import current_run_id
from ringfence.jobs.telemetry.traced_run import TracedRun, traced
from tests.jobs.telemetry.lineage_schema import broken_rules
from tests.patience import PATIENCE_SECONDS

GRAPH = {"label": "Account", "key": "id", "features": "x", "class_property": "kind"}


@dataclass(frozen=True)
class Row:
    seq: int
    slice: str
    name: str
    alpha: float = 0.1
    evaluated: int = 10
    known: int = 8
    covered: int = 7
    verdict: str = "kept"


@dataclass(frozen=True)
class Report:
    seq: int | None = 7
    evaluated: int = 3
    newly_known: int = 5
    rows: tuple = (
        Row(1, "total", ""),
        Row(2, "total", ""),
        Row(2, "class", "mule"),
        Row(2, "group", "north"),
    )


@pytest.fixture
def workspace(tmp_path):
    """A workspace whose settings are real; nothing else of it is asked."""

    def of(lineage="events.jsonl", environment=None):
        values = {
            "project": "cards",
            "graph": dict(GRAPH),
            "neo4j": {"uri": "neo4j+s://graph.example", "database": "shop"},
            "telemetry": {"lineage": lineage},
        }
        given = {"RINGFENCE_NEO4J_PASSWORD": "none"} | (environment or {})
        loaded = load_values(values, tmp_path / "ringfence.toml", given)
        patient = {"timeout_seconds": PATIENCE_SECONDS}  # above what a file may say
        telemetry = loaded.telemetry.model_copy(update=patient)
        return SimpleNamespace(settings=loaded.model_copy(update={"telemetry": telemetry}))

    return of


def work(workspace, verb="score", fail=False):
    run_ids = []

    @traced(verb)
    def run(_workspace):
        run_ids.append(current_run_id())
        if fail:
            raise ValueError("account 4711 is a mule")
        return Report()

    run(workspace)
    return run_ids[0]


def events(tmp_path):
    return [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]


def test_a_run_is_a_start_and_an_end_of_one_job(workspace, tmp_path):
    run_id = work(workspace())
    start, end = events(tmp_path)
    assert [event["eventType"] for event in (start, end)] == ["START", "COMPLETE"]
    for event in (start, end):
        assert event["job"] == {"namespace": "ringfence", "name": "cards.score", "facets": {}}
        assert event["run"]["runId"] == str(UUID(run_id))
        (read,) = event["inputs"]
        assert (read["namespace"], read["name"]) == ("neo4j://graph.example:7687", "shop.Account")
    assert start["eventTime"] <= end["eventTime"]
    facts = end["run"]["facets"]["ringfence_run"]
    assert (facts["verb"], facts["run"], facts["evaluated"]) == ("score", 7, 3)
    (written,) = end["outputs"]
    assert written["name"] == "shop.MAY_BE"
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 3


def test_an_audit_brings_its_newest_coverage_over_all_and_by_class(workspace, tmp_path):
    work(workspace(), "audit")
    (written,) = events(tmp_path)[-1]["outputs"]
    slices = written["outputFacets"]["ringfence_coverage"]["slices"]
    assert [(row["seq"], row["slice"], row["name"]) for row in slices] == [
        (2, "total", ""),
        (2, "class", "mule"),
    ]
    assert slices[0]["covered"] == 7
    assert "north" not in json.dumps(events(tmp_path))  # a value of the graph


@pytest.fixture
def sent(workspace, tmp_path):
    """All events of a `score`, of an `audit` and of a run that failed, as a receiver gets them."""
    for verb in ("score", "audit"):
        work(workspace(), verb)
    with pytest.raises(ValueError, match="4711"):
        work(workspace(), fail=True)
    return events(tmp_path)


def test_every_event_is_as_the_published_schema_has_it(sent):
    assert [event["eventType"] for event in sent] == ["START", "COMPLETE"] * 2 + ["START", "FAIL"]
    assert {event["schemaURL"].rpartition("/")[2] for event in sent} == {"RunEvent"}
    assert [broken_rules(event) for event in sent] == [[]] * 6


def without(key):
    return lambda part: part.pop(key)


def having(key, value):
    return lambda part: part.update({key: value})


BROKEN = {
    "no run id": ((), lambda event: event["run"].pop("runId"), "'runId' is a required property"),
    "a run id that is none": (("run",), having("runId", "7"), "runId is no UUID"),
    "no job": ((), without("job"), "'job' is a required property"),
    "another state": ((), having("eventType", "DONE"), "'DONE' is not"),
    "a time without its zone": ((), having("eventTime", "2026-11-19T12:00:00"), "no time zone"),
    "a producer that is no URI": ((), having("producer", "ringfence"), "ringfence is no URI"),
    "another schema": ((), having("schemaURL", "https://a/b"), "no published schema is https"),
    "a property that there is not": ((), having("input", []), "'input' was unexpected"),
    "outputs that are no list": ((), having("outputs", {}), "{} is not"),
    "a dataset without its namespace": (("inputs", 0), without("namespace"), "is not valid under"),
    "a count that is text": (
        ("outputs", 0, "outputFacets", "outputStatistics"),
        having("rowCount", "3"),
        "outputStatistics: $.rowCount '3' is not",
    ),
    "a facet without its producer": (
        ("run", "facets", "processing_engine"),
        without("_producer"),
        "'_producer' is a required property",
    ),
    "an engine without its version": (
        ("run", "facets", "processing_engine"),
        without("version"),
        "processing_engine: $ 'version' is a required property",
    ),
    "a facet of an unknown schema": (
        ("run", "facets", "ringfence_run"),
        having("_schemaURL", "https://a/b"),
        "ringfence_run: no published schema is https://a/b",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_event_is_none_of_the_published_schema(sent, name):
    """The negative control."""
    path, break_it, said = BROKEN[name]
    event = part = json.loads(json.dumps(sent[1]))
    for step in path:
        part = part[step]
    break_it(part)
    assert any(said in rule for rule in broken_rules(event)), broken_rules(event)


def test_a_failed_run_names_the_error_and_writes_nothing(workspace, tmp_path):
    with pytest.raises(ValueError, match="4711"):
        work(workspace(), fail=True)
    end = events(tmp_path)[-1]
    assert (end["eventType"], end["outputs"]) == ("FAIL", [])
    assert end["run"]["facets"]["errorMessage"]["message"] == "ValueError"
    assert "4711" not in json.dumps(events(tmp_path))


def test_other_verbs_and_an_empty_setting_send_nothing(workspace, tmp_path):
    work(workspace(), "verify")
    work(workspace(lineage=""))
    assert not (tmp_path / "events.jsonl").exists()


@pytest.fixture
def receiver():
    """A receiver in this process, as Marquez answers; `.answer` is its status code."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.requests.append((self.path, self.headers["Authorization"], json.loads(body)))
            self.send_response(server.answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_given):
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.answer = [], 201
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_receiver_gets_both_with_the_key_and_without_the_key_nothing_of_it(workspace, receiver):
    address = f"http://127.0.0.1:{receiver.server_port}"
    work(workspace(address, {"RINGFENCE_TELEMETRY_LINEAGE_KEY": "k1"}))
    assert [path for path, _, _ in receiver.requests] == ["/api/v1/lineage"] * 2
    assert {header for _, header, _ in receiver.requests} == {"Bearer k1"}
    receiver.requests.clear()
    work(workspace(address))
    assert {header for _, header, _ in receiver.requests} == {None}


@pytest.mark.parametrize("refuses", [True, False])
def test_a_receiver_that_refuses_or_is_away_fails_no_run(workspace, receiver, refuses):
    receiver.answer = 500
    url = f"http://127.0.0.1:{receiver.server_port if refuses else 9}"
    told = TracedRun("ab" * 16, "score", "cards", 1, end_ns=2)
    assert send_lineage(told, workspace(url).settings) in (
        "HTTPError",
        "ConnectionError",
        "RetryError",
    )
    work(workspace(url))  # ends well


def test_a_missing_extra_fails_no_run(workspace, monkeypatch):
    def missing(*_given):
        raise ImportError("no openlineage")

    monkeypatch.setattr(openlineage_events, "lineage_events", missing)
    told = TracedRun("ab" * 16, "score", "cards", 1, end_ns=2)
    assert send_lineage(told, workspace().settings) == NOT_INSTALLED
