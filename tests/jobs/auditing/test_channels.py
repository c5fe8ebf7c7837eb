"""Channels: a registry of names that stand in SQL, each on only where it is configured."""

import pytest

from ringfence.connector.alarm_records import AlarmEvent
from ringfence.jobs.auditing.alarms.channels import CHANNELS
from ringfence.jobs.auditing.alarms.channels.base import Message
from ringfence.jobs.auditing.alarms.delivery import is_told
from ringfence.jobs.auditing.alarms.rules import RECORD, RULES
from ringfence.jobs.config.alarms import AlarmSettings, Rule


def event(was, state):
    return AlarmEvent(3, 0, "coverage", was, state, "why", ())


def configured(**values):
    settings = AlarmSettings(**values)
    return [channel.name for channel in CHANNELS if channel.is_configured(settings)]


def test_a_channel_is_on_where_its_address_is_set():
    assert configured() == []
    assert configured(webhook="http://127.0.0.1:1/") == ["webhook"]
    assert configured(email_to=["a@example.org"]) == ["mail"]


def test_names_are_unique_words_without_spaces():
    names = [channel.name for channel in CHANNELS]
    assert len(set(names)) == len(names)
    assert all(
        name.split() == [name] for name in names
    )  # the column `delivered` is split at spaces


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_a_receiver_that_is_away_has_not_taken_the_message(channel):
    settings = AlarmSettings(
        webhook="http://127.0.0.1:1/",
        email_to=["a@example.org"],
        smtp_host="127.0.0.1",
        smtp_port=1,
    )
    with pytest.raises(OSError, match="refused"):
        channel.send(settings, Message("p", event("ok", "firing")), lambda _connection: None)


def test_a_message_says_what_changed_and_when():
    assert Message("p", event("ok", "firing")).body() == {
        "project": "p", "number": 3, "at": "1970-01-01 00:00:00Z", "rule": "coverage",
        "was": "ok", "state": "firing", "words": "why",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("was", "state", "told"),
    [("ok", "pending", False), ("pending", "ok", False), ("pending", "firing", True),
     ("firing", "ok", True), ("ok", "no data", True)],
)  # fmt: skip
def test_nobody_is_told_of_an_alarm_that_never_fired(was, state, told):
    assert is_told(event(was, state)) is told


def test_every_rule_of_the_configuration_has_a_function():
    assert [*RULES, RECORD] == list(Rule.__args__)
