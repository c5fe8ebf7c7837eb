"""Alarm rules over time: silence is a state of its own, and each change is told, signed."""

import http.server
import json
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from ringfence.connector.store import tables
from ringfence.connector.store.alarms import CoverageDecline, _facts
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.writer import Writer
from ringfence.jobs.auditing.alarms import rules
from ringfence.jobs.auditing.alarms.channels.webhook import signature
from ringfence.jobs.auditing.alarms.state import raise_alarms
from ringfence.jobs.config.alarms import AlarmSettings
from ringfence.jobs.config.load import load_values
from ringfence.jobs.samples.audit_store import Plan, fill_store

DAY_NS = 86_400 * 10**9
RULES = ["coverage", "unseen", "drift", "bias", "labels", "runs"]


@contextmanager
def receiver():
    """A web server that keeps what is posted to it, with the signature of each."""
    posted = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((json.loads(body), self.headers["X-Ringfence-Signature"], body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", posted
        server.shutdown()
        thread.join()


@contextmanager
def audited(folder, webhook, **plan):
    """A made-up store with every rule on; gives a look at it and a function that checks alarms."""
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "alarms": {"rules": RULES, "webhook": webhook},
    }
    secret = {"RINGFENCE_ALARMS_WEBHOOK_SECRET": "shared"}
    settings = load_values(values, folder / "ringfence.toml", secret)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=4, per_run=100, **plan))
    held = acquire(store, "p", "test", 60)
    key = chain_key(None, settings.engine.folder)

    def states():
        return {one.rule: one.state for one in raise_alarms(Writer(store, held, key), settings)}

    yield store, states
    release(store, held)
    store.close()


def pass_days(store, days):
    """Let everything have happened so much earlier."""
    with store.transaction() as connection:
        for column in (tables.label.c.noticed_ns, tables.run.c.decided_ns):
            connection.execute(
                column.table.update().values({column.name: column - int(days * DAY_NS)})
            )


def test_silence_is_no_data_and_not_fine_and_whoever_listens_is_told_both_ways(tmp_path):
    with receiver() as (url, posted), audited(tmp_path, url) as (store, states):
        assert set(states().values()) == {"ok"}
        pass_days(store, 2)
        assert states() == dict.fromkeys(RULES, "ok") | {"runs": "firing"}
        pass_days(store, 6)  # eight in all: more than a week without a class
        silent = states()
        assert (silent["coverage"], silent["labels"], silent["unseen"]) == (
            "no data",
            "firing",
            "ok",
        )
        pass_days(store, -8)
        assert set(states().values()) == {"ok"}
        events = ProjectQueries(store, "p").alarm_events()
    told = [(body["rule"], body["was"], body["state"]) for body, _, _ in posted]
    assert told == [
        ("runs", "ok", "firing"),
        ("coverage", "ok", "no data"),
        ("labels", "ok", "firing"),
        ("coverage", "no data", "ok"),
        ("labels", "firing", "ok"),
        ("runs", "firing", "ok"),
    ]
    assert all(sent == signature("shared", body) for _, sent, body in posted)
    assert {event.delivered for event in events} == {("webhook",)}


def test_silence_does_not_hide_a_broken_promise(tmp_path):
    with receiver() as (url, _), audited(tmp_path, url, covered=0.6) as (store, states):
        assert states()["coverage"] == "firing"
        pass_days(store, 30)
        assert states()["coverage"] == "firing"


@pytest.mark.parametrize("known", [0.0, 0.7])
def test_before_the_first_class_there_is_no_data_and_nobody_is_bothered(tmp_path, known):
    with receiver() as (url, posted), audited(tmp_path, url, known=known) as (_, states):
        expected = "ok" if known else "no data"
        found = states()
        assert (found["coverage"], found["labels"]) == (expected, expected)
    assert posted == []


def facts_of(store, *capitals):
    """What the newest check would judge, with a made-up bet on a decline for each alpha."""
    with store.reading() as connection:
        facts = _facts(connection, "p", now=0)
    bets = (
        CoverageDecline(facts.total.model, 0.1 * (i + 1), 40, capital, 31, 1_000, 830)
        for i, capital in enumerate(capitals)
    )
    return replace(facts, declines=tuple(bets))


def test_a_decline_fires_at_a_capital_of_a_hundred_for_each_alpha(tmp_path):
    with audited(tmp_path, None) as (store, _states):
        settings = AlarmSettings()
        decline = rules.RULES["decline"]
        assert decline(facts_of(store), settings).holds is None
        calm, loud = (decline(facts_of(store, capital), settings) for capital in (99.0, 101.0))
        assert (calm.holds, loud.holds) == (False, True)
        assert "since run 31 83.0 % of 1,000 known nodes" in loud.sentence
        assert decline(facts_of(store, 101.0, 0.5), settings).holds is False
        assert decline(facts_of(store, 0.5, 201.0), settings).holds is True
