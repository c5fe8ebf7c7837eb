"""Runs tell their id, steps and end; a receiver gets a trace; nothing of it can fail a run."""

import http.server
import json
import logging
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.semconv.attributes import db_attributes as db
from opentelemetry.semconv.attributes import error_attributes as error
from opentelemetry.semconv.attributes import server_attributes as server
from opentelemetry.semconv.attributes import service_attributes as service

import ringfence
from ringfence.jobs.config.settings import TelemetrySettings
from ringfence.jobs.telemetry import otlp
from ringfence.jobs.telemetry.log_lines import LOGGER_NAMES, JsonLine, TextLine
from ringfence.jobs.telemetry.run_id import current_run_id, run_scope
from ringfence.jobs.telemetry.span_attributes import REPLACED, step_attributes
from ringfence.jobs.telemetry.stopwatch import Stopwatch
from ringfence.jobs.telemetry.traced_run import traced
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Report:
    seq: int
    evaluated: int
    words: str
    version: str = "v-1"


def workspace_with(**telemetry):
    patient = {"timeout_seconds": PATIENCE_SECONDS}  # above what a file may say
    read = TelemetrySettings(**telemetry)
    settings = SimpleNamespace(
        project="cards",
        telemetry=read if "timeout_seconds" in telemetry else read.model_copy(update=patient),
        neo4j=SimpleNamespace(uri="neo4j+s://graph.example:7688", database="cards"),
        audit=SimpleNamespace(url="postgresql+psycopg://app@db.example/record"),
    )
    return SimpleNamespace(settings=settings)


@traced("score")
def work(workspace, fail=False):
    stopwatch = Stopwatch()
    stopwatch.lap("read")
    stopwatch.lap("decide")
    if fail:
        raise ValueError("account 4711 is a mule")
    return Report(seq=7, evaluated=3, words="account 4711 is a mule")


@pytest.fixture(autouse=True)
def quiet_loggers():
    """What a test configures is gone after it."""
    before = {
        name: (logging.getLogger(name).handlers, logging.getLogger(name).propagate)
        for name in LOGGER_NAMES
    }
    for name in LOGGER_NAMES:
        logging.getLogger(name).handlers = []
    yield
    for name, (handlers, propagate) in before.items():
        logging.getLogger(name).handlers = handlers
        logging.getLogger(name).propagate = propagate


@pytest.fixture
def receiver():
    """A receiver of OTLP over HTTP in this process; `.answer` is its status code."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.requests.append((self.path, dict(self.headers), body))
            self.send_response(server.answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_given):
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.answer = [], 200
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def spans_in(receiver):
    ((_, _, body),) = receiver.requests
    message = ExportTraceServiceRequest.FromString(body)
    (resource,) = message.resource_spans
    return [span for scope in resource.scope_spans for span in scope.spans]


def values_of(span_or_resource):
    """Attributes, by their names."""
    return {
        one.key: one.value.string_value or one.value.int_value
        for one in span_or_resource.attributes
    }


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_off_by_default_nothing_is_told(capsys):
    assert work(workspace_with()).seq == 7
    assert capsys.readouterr().err == ""


def test_every_line_of_a_run_has_its_id_and_no_value_of_the_graph(capsys):
    work(workspace_with(log="json"))
    told = lines(capsys)
    assert [line["event"] for line in told] == ["run started", "step", "step", "run ended"]
    assert [line.get("step") for line in told[1:3]] == ["read", "decide"]
    (run_id,) = {line["run_id"] for line in told}
    assert len(run_id) == 32
    assert (told[-1]["run"], told[-1]["evaluated"], told[-1]["verb"]) == (7, 3, "score")
    assert "4711" not in json.dumps(told)


def test_a_run_that_fails_says_so_by_the_name_of_the_error_alone(capsys):
    with pytest.raises(ValueError, match="4711"):
        work(workspace_with(log="json"), fail=True)
    last = lines(capsys)[-1]
    assert (last["event"], last["level"], last["error"]) == ("run ended", "ERROR", "ValueError")
    assert "4711" not in json.dumps(last)


def test_a_run_inside_a_scope_keeps_its_id(capsys):
    with run_scope() as outer:
        work(workspace_with(log="json"))
        assert current_run_id() == outer
    assert {line["run_id"] for line in lines(capsys)} == {outer}
    assert current_run_id() is None


def test_lines_of_other_parts_carry_the_id_too():
    record = logging.LogRecord("ringfence", logging.WARNING, "", 0, "reading: away", (), None)
    with run_scope() as run_id:
        assert json.loads(JsonLine().format(record))["run_id"] == run_id
        assert TextLine().format(record).endswith(f"run_id={run_id}")
    assert "run_id" not in json.loads(JsonLine().format(record))


def test_a_receiver_gets_one_trace_with_a_span_per_step(receiver, capsys):
    work(workspace_with(traces=True, endpoint=receiver.url, log="json", headers="X-Key=a%20b"))
    spans = spans_in(receiver)
    assert {span.name for span in spans} == {"ringfence score", "read", "decide"}
    (root,) = [span for span in spans if not span.parent_span_id]
    assert root.name == "ringfence score"
    assert {span.parent_span_id for span in spans if span is not root} == {root.span_id}
    (run_id,) = {line["run_id"] for line in lines(capsys)}
    assert {span.trace_id.hex() for span in spans} == {run_id}
    facts = {one.key: one.value for one in root.attributes}
    assert facts["ringfence.project"].string_value == "cards"
    assert facts["ringfence.run"].int_value == 7
    assert all(span.end_time_unix_nano <= root.end_time_unix_nano for span in spans)
    ((path, headers, body),) = receiver.requests
    assert (path, {name.lower(): one for name, one in headers.items()}["x-key"]) == (
        "/v1/traces",
        "a b",
    )
    assert b"4711" not in body


def test_names_are_those_of_the_semantic_conventions_and_replaced_ones_stay_beside_them(receiver):
    work(workspace_with(traces=True, endpoint=receiver.url))
    ((_, _, body),) = receiver.requests
    (resources,) = ExportTraceServiceRequest.FromString(body).resource_spans
    sender = values_of(resources.resource)
    assert sender[service.SERVICE_NAME] == "ringfence"
    assert sender[service.SERVICE_VERSION] == ringfence.__version__
    assert len(sender[service.SERVICE_INSTANCE_ID]) == 32
    spans = {span.name: values_of(span) for span in spans_in(receiver)}
    assert spans["read"] == {
        db.DB_SYSTEM_NAME: "neo4j",
        db.DB_NAMESPACE: "cards",
        server.SERVER_ADDRESS: "graph.example",
        server.SERVER_PORT: 7688,
    }
    assert spans["decide"] == {
        db.DB_SYSTEM_NAME: "postgresql",
        db.DB_NAMESPACE: "record",
        server.SERVER_ADDRESS: "db.example",
    }
    root = spans["ringfence score"]
    assert error.ERROR_TYPE not in root  # no failure
    for old, new in REPLACED.items():
        assert root[old] == root[new] == "v-1"


def test_steps_of_local_stores_name_no_server_and_no_path():
    settings = SimpleNamespace(
        neo4j=SimpleNamespace(uri="embedded", database="neo4j"),
        audit=SimpleNamespace(url="sqlite:////home/amelie/audit.db"),
    )
    assert step_attributes("read", settings) == {"db.system.name": "neo4j", "db.namespace": "neo4j"}
    assert step_attributes("decide", settings) == {"db.system.name": "sqlite"}
    assert step_attributes("compute", settings) == {}


def test_a_failed_run_is_a_failed_span(receiver):
    with pytest.raises(ValueError, match="4711"):
        work(workspace_with(traces=True, endpoint=receiver.url), fail=True)
    (root,) = [span for span in spans_in(receiver) if not span.parent_span_id]
    assert (root.status.code, root.status.message) == (2, "ValueError")
    assert values_of(root)["error.type"] == "ValueError"
    assert b"4711" not in receiver.requests[0][2]


@pytest.mark.parametrize("refuses", [True, False])
def test_a_receiver_that_refuses_or_is_away_fails_no_run(receiver, capsys, refuses):
    receiver.answer = 400
    url = receiver.url if refuses else "http://127.0.0.1:9/v1/traces"
    told = workspace_with(traces=True, endpoint=url, log="json", timeout_seconds=0.2)
    assert work(told).seq == 7
    last = lines(capsys)[-1]
    assert (last["event"], last["level"]) == ("trace not delivered", "WARNING")


def test_a_missing_extra_fails_no_run(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    assert work(workspace_with(traces=True, log="json")).seq == 7
    assert lines(capsys)[-1]["words"] == otlp.NOT_INSTALLED


def test_scoring_imports_no_opentelemetry(tmp_path):
    script = (
        "import sys, ringfence.jobs.scoring.score, ringfence.jobs.schedule.runner\n"
        "sys.exit(any(name.partition('.')[0] == 'opentelemetry' for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    assert done.returncode == 0


def test_the_events_of_a_run_stand_in_the_guide():
    guide = (ROOT / "docs/operations.md").read_text("utf-8")
    for event in ("run started", "step", "run ended", "trace not delivered"):
        assert f"`{event}`" in guide
