"""A failed verification is an alarm: told by the channels, on record, ended when all is well."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.cli.commands.runs.status import print_status
from ringfence.jobs.dashboard.metrics import exposition
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.schedule import job_functions
from ringfence.jobs.views.status import read_status
from tests.jobs.auditing.test_alarms import receiver
from tests.jobs.integrity.sample_record import unguarded
from tests.stores import sqlite


def with_webhook(workspace, url, **alarms):
    values = workspace.settings.alarms.model_copy(update={"webhook": url, **alarms})
    return replace(workspace, settings=workspace.settings.model_copy(update={"alarms": values}))


def verify(workspace):
    return job_functions.verify(workspace, lambda *_: None)


def edit(workspace, statement):
    with workspace.store.transaction() as connection, unguarded(connection):
        connection.execute(text(statement))


def states(workspace):
    alarms = ProjectQueries(workspace.store, workspace.project).alarms()
    return {alarm.rule: alarm.state for alarm in alarms}


@pytest.mark.slow
def test_an_edit_fires_the_alarm_and_its_end_ends_it(scored, capsys):
    with receiver() as (url, posted):
        workspace = with_webhook(scored.workspace, url, pending_minutes=60.0)
        queries = ProjectQueries(workspace.store, workspace.project)
        run_audit(workspace)
        assert verify(workspace).outcome == "done"
        assert states(workspace)["record"] == "ok"
        before = queries.chain_length()
        assert verify(workspace).outcome == "done"
        assert queries.chain_length() == before  # nothing new: no entry
        # no audit rests on it: the coverage of its run is on record already
        edit(workspace, "UPDATE prediction SET evidence = evidence || '!'")
        assert verify(workspace).outcome == "failed"
        assert states(workspace)["record"] == "firing"
        assert verify(workspace).outcome == "failed"
        assert [(body["rule"], body["state"]) for body, *_ in posted] == [("record", "firing")]
        assert "evidence" in posted[0][0]["words"]
        report = run_audit(workspace)  # audits leave it as it is, and show it
        assert {alarm.rule: alarm.state for alarm in report.alarms}["record"] == "firing"
        assert report.alarm
        print_status(read_status(workspace.store, workspace.project))
        assert "ALARM record since" in capsys.readouterr().out
        metrics = exposition(queries).decode()
        assert 'ringfence_alarm{project="test",rule="record",state="firing"} 1' in metrics, metrics
        edit(workspace, "UPDATE prediction SET evidence = replace(evidence, '!', '')")
        assert verify(workspace).outcome == "done"
        assert states(workspace)["record"] == "ok"
        assert [body["state"] for body, *_ in posted] == ["firing", "ok"]
    assert run_verification(scored.workspace).problems == ()


@sqlite
def test_where_the_chain_cant_be_added_to_the_channels_are_told_all_the_same(trained):
    with receiver() as (url, posted):
        workspace = with_webhook(trained.workspace, url)
        edit(workspace, "UPDATE audit SET body = '{}'")
        assert verify(workspace).outcome == "failed"
        assert verify(workspace).outcome == "failed"
        assert states(workspace) == {}
    assert [body["state"] for body, *_ in posted] == ["firing", "firing"]
    assert "not on record" in posted[0][0]["words"]


@sqlite
def test_without_the_rule_nobody_is_told(trained):
    with receiver() as (url, posted):
        workspace = with_webhook(trained.workspace, url, rules=["coverage"])
        edit(workspace, "UPDATE model SET trained_ns = 7")
        assert verify(workspace).outcome == "failed"
    assert (posted, states(workspace)) == ([], {})
