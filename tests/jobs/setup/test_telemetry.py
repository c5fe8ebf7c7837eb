"""doctor says whether traces that are switched on can leave."""

import socket

from ringfence.connector import extras
from ringfence.jobs.config.load import load_values
from ringfence.jobs.setup.checks.telemetry import check_telemetry

GRAPH = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}


def findings(tmp_path, **values):
    settings = load_values({"graph": GRAPH, "telemetry": values}, tmp_path / "ringfence.toml", {})
    return [(one.level, one.text) for one in check_telemetry(settings)]


def test_nothing_is_said_where_traces_are_off(tmp_path):
    assert findings(tmp_path) == []


def test_a_receiver_that_listens_is_fine_and_one_that_does_not_is_a_warning(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ((level, text),) = findings(tmp_path, traces=True, endpoint=f"http://127.0.0.1:{port}/v1")
    assert (level, text) == ("ok", f"traces go to 127.0.0.1:{port}")
    ((level, text),) = findings(tmp_path, traces=True, endpoint=f"http://127.0.0.1:{port}/v1")
    assert level == "warning"
    assert "ConnectionRefusedError" in text


def test_a_missing_extra_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(extras, "_is_installed", lambda name: name != "opentelemetry.sdk")
    ((level, text),) = findings(tmp_path, traces=True)
    assert level == "warning"
    assert "opentelemetry-sdk is not installed" in text
