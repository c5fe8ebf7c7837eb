"""Late classes, changed classes, groups, bias, alarms: what an audit notes and what it says."""

import http.server
import json
import socket
import socketserver
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import select

from ringfence.connector.keys import encode_key
from ringfence.connector.store import alarms, chain, coverage, labels, tables
from ringfence.connector.store.alarms import CheckedAlarm
from ringfence.jobs.auditing.alarms.channels.webhook import signature
from ringfence.jobs.auditing.audit import count_coverage, run_audit
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from tests.forms import both_forms


def changed(settings, **sections):
    return settings.model_copy(
        update={
            name: getattr(settings, name).model_copy(update=values)
            for name, values in sections.items()
        }
    )


@pytest.fixture
def sql_url(tmp_path):
    """SQLite alone: what SQL must do on both is in test_audit_store.py."""
    return f"sqlite:///{tmp_path / 'ringfence.db'}"


def unlabelled(grown):
    return grown.first.nodes[~grown.labelled[grown.first.nodes]]


@both_forms
def test_a_class_that_changes_keeps_both_values_and_old_coverage_can_be_recomputed(scored):
    workspace = scored.workspace
    scored.reveal(unlabelled(scored)[:60])
    before = run_audit(workspace)
    assert (before.newly_known, before.changed) == (60, 0)
    then = coverage.mark_of(workspace.store, "test").audited_ns
    node = int(unlabelled(scored)[0])
    workspace.graph.run("MATCH (n:Account {id: $id}) SET n.kind = 'unheard of'", id=node)
    scored.reveal(unlabelled(scored)[60:80])
    after = run_audit(workspace)
    assert (after.newly_known, after.changed) == (20, 1)
    noticed = labels.history(workspace.store, "test", encode_key(node))
    assert [change.label for change in noticed][1] == "unheard of"
    assert len(noticed) == 2
    assert noticed[0].noticed_ns < noticed[1].noticed_ns
    assert (after.total.known, after.total.unseen) == (80, 1)
    assert count_coverage(workspace.store, workspace.settings, then) == list(before.rows)
    assert count_coverage(workspace.store, workspace.settings) == list(after.rows)


def test_an_unseen_class_raises_an_alarm_of_its_own_by_webhook_and_mail(scored):
    with receiver() as (url, posted), mailbox() as (port, mails):
        alarms = {"webhook": url, "email_to": ["a@example.org"], "smtp_port": port}
        settings = changed(scored.workspace.settings, alarms=alarms)
        with open_workspace(settings) as workspace:
            scored.reveal(unlabelled(scored)[:60])
            assert not run_audit(workspace).alarm
            assert posted == []
            workspace.graph.run(
                "MATCH (n:Account {id: $id}) SET n.kind = '<b>new</b>'",
                id=int(unlabelled(scored)[70]),
            )
            report = run_audit(workspace)
            assert report.alarm
            states = {alarm.rule: alarm.state for alarm in report.alarms}
            assert (states["unseen"], states["coverage"]) == ("firing", "ok")
            run_audit(workspace)  # nothing changed: nobody is told again
    assert [body["rule"] for body in posted] == ["unseen"]
    assert "<b>new</b> (1)" in posted[0]["words"]
    assert len(mails) == 1
    assert "unseen is firing" in mails[0]


def test_a_receiver_that_was_down_gets_the_alarm_later(scored):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = changed(scored.workspace.settings, alarms={"webhook": f"http://127.0.0.1:{port}/"})
    with open_workspace(settings) as workspace:
        workspace.graph.run("MATCH (n:Account)-[:EVALUATED]->() SET n.kind = 'unheard of'")
        assert run_audit(workspace).alarm
        with receiver(port) as (_, posted):
            run_audit(workspace)
        assert {body["rule"] for body in posted} == {"coverage", "decline", "unseen"}


def test_an_alarm_waits_for_its_pending_period(scored):
    settings = changed(scored.workspace.settings, alarms={"pending_minutes": 60.0})
    with open_workspace(settings) as workspace:
        workspace.graph.run("MATCH (n:Account)-[:EVALUATED]->() SET n.kind = 'unheard of'")
        first = run_audit(workspace)
        states = {alarm.rule: alarm.state for alarm in first.alarms}
        assert (states["coverage"], states["unseen"]) == ("pending", "pending")
        assert not first.alarm
        with workspace.writer() as writer:
            alarms.record_states(writer, lambda _, before: earlier(before.values()))
        assert run_audit(workspace).alarm


def earlier(states):
    """The same states an hour ago, on record."""
    return [
        CheckedAlarm(replace(state, since_ns=state.since_ns - 3600 * 10**9), None)
        for state in states
    ]


def test_groups_are_counted_and_stale_rows_leave_sql_and_graph(scored):
    settings = changed(scored.workspace.settings, audit={"groups": ["region"]})
    with open_workspace(settings) as workspace:
        workspace.graph.run(
            "MATCH (n:Account) SET n.region = CASE n.id % 2 WHEN 0 THEN 'north' ELSE 'south' END"
        )
        scored.reveal(unlabelled(scored))
        rows = run_audit(workspace).rows
        named = {row.name: row for row in rows if row.slice == "group"}
        assert set(named) == {"region=north", "region=south"}
        assert sum(row.known for row in named.values()) == len(unlabelled(scored))
        scored.arrive(scored.later[0])
        run_scoring(workspace)
        rows = run_audit(workspace).rows
        assert {row.seq for row in rows if row.slice in ("group", "class")} == {2}
        in_graph = workspace.graph.read(
            "MATCH (a:CoverageAudit)-[:AUDITS]->(r) WHERE a.slice IN ['group', 'class'] "
            "RETURN DISTINCT r.seq AS seq"
        )
        assert [row["seq"] for row in in_graph] == [2]
        assert {row.slice for row in rows} == {"run", "window", "total", "class", "group"}
        with workspace.writer() as writer, workspace.store.reading() as connection:
            assert chain.first_broken(connection, "test", writer.key) is None


def test_classes_are_found_by_their_time_where_the_graph_has_one(scored):
    settings = changed(scored.workspace.settings, graph={"labelled_at": "labelled_at"})
    with open_workspace(settings) as workspace:
        ids = [int(i) for i in unlabelled(scored)[:40]]
        set_class = (
            "MATCH (n:Account) WHERE n.id IN $ids "
            "SET n.kind = 'retail', n.labelled_at = datetime.realtime()"
        )
        workspace.graph.run(set_class, ids=ids)
        assert run_audit(workspace).newly_known == 40
        assert run_audit(workspace).newly_known == 0
        workspace.graph.run(set_class.replace("retail", "mule"), ids=ids[:3])
        assert run_audit(workspace).changed == 3
        (first, second) = labels.history(workspace.store, "test", encode_key(ids[0]))
        assert first.happened_ns < second.happened_ns


def test_a_run_notes_its_calibration_scores_and_feeds_the_watch(scored):
    workspace = scored.workspace
    scored.reveal(unlabelled(scored))
    run_audit(workspace)
    scored.arrive(scored.later[0])
    run_scoring(workspace)
    with workspace.store.reading() as connection:
        rows = connection.execute(select(tables.run).order_by(tables.run.c.seq)).all()
    first, second = (json.loads(row.watch) for row in rows)
    assert (first["new"], second["new"]) == (0, len(unlabelled(scored)))
    assert second["state"]["jumper"]["labels"] == len(unlabelled(scored))
    quantiles = json.loads(rows[1].calibration_scores)
    assert quantiles == sorted(quantiles)
    alarms = {alarm.rule: alarm for alarm in run_audit(workspace).alarms}
    assert alarms["drift"].state == "ok"
    assert "no sign of a change" in alarms["drift"].words


def test_empty_sets_are_filled_on_request_and_the_run_says_so(scored):
    settings = changed(scored.workspace.settings, conformal={"nonempty": True, "alpha": 0.4})
    with open_workspace(settings) as workspace:
        scored.arrive(scored.later[0])
        report = run_scoring(workspace)
        assert 0 not in report.sizes
        assert any("were given their likeliest class" in note for note in report.run.notes)
        filled = workspace.graph.read(
            "MATCH (n)-[m:MAY_BE]->(), (n)-[e:EVALUATED]->({seq: 2}) "
            "WHERE m.p <= e.alpha RETURN count(*) AS n"
        )
        assert filled[0]["n"] > 0


@contextmanager
def receiver(port=0):
    posted = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append(json.loads(body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_args):
            pass

    with http.server.HTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hook", posted
        server.shutdown()
        thread.join()


@contextmanager
def mailbox():
    """A mail server that knows just enough SMTP to take a message."""
    mails = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(b"220 test\r\n")
            for line in self.rfile:
                verb = line.strip().upper()
                if verb == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    body = b""
                    while (more := self.rfile.readline()) != b".\r\n":
                        body += more
                    mails.append(body.decode())
                self.wfile.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 fine\r\n")
                if verb == b"QUIT":
                    return

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1], mails
        server.shutdown()
        thread.join()


def test_a_webhook_signature_depends_on_secret_and_body():
    signed = signature("s", b"a")
    assert signed != signature("t", b"a")
    assert signed != signature("s", b"b")
