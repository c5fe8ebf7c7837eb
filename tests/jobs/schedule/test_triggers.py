"""When jobs are due: cron as crontab means it, intervals, time zones, lines that never fire."""

from datetime import UTC, datetime

import pytest
from apscheduler.triggers.cron import CronTrigger

from ringfence.connector.errors import ConfigError
from ringfence.jobs.schedule.triggers import parse_trigger


def ns(*moment):
    return int(datetime(*moment, tzinfo=UTC).timestamp()) * 10**9


def times(text, zone, start, count):
    trigger, moment, found = parse_trigger(text, zone, "score"), ns(*start), []
    for _ in range(count):
        moment = trigger.next_after(moment)
        found.append(datetime.fromtimestamp(moment // 10**9, UTC).strftime("%m-%d %H:%M"))
    return found


def test_a_cron_line_is_meant_in_its_time_zone():
    assert times("30 2 * * *", "Europe/Berlin", (2026, 7, 1), 2) == ["07-01 00:30", "07-02 00:30"]
    assert times("30 2 * * *", "Asia/Kolkata", (2026, 7, 1), 1) == ["07-01 21:00"]


def test_the_next_time_is_strictly_later():
    trigger = parse_trigger("*/10 * * * *", "UTC", "score")
    on_the_dot = ns(2026, 7, 1, 12, 10)
    assert trigger.next_after(on_the_dot) == ns(2026, 7, 1, 12, 20)
    assert trigger.next_after(on_the_dot - 1_000) == on_the_dot


def test_a_time_that_summer_time_skips_comes_an_hour_later_and_is_not_dropped():
    assert times("30 2 * * *", "Europe/Berlin", (2026, 3, 28, 12), 2) == [
        "03-29 01:30",
        "03-30 00:30",
    ]


def test_weekdays_are_counted_as_crontab_counts_them():
    sunday = "11-15 02:00"
    for line in ("0 2 * * 0", "0 2 * * 7", "0 2 * * sun"):
        assert times(line, "UTC", (2026, 11, 9), 1) == [sunday]
    assert times("0 2 * * 1-5", "UTC", (2026, 11, 13, 3), 1) == ["11-16 02:00"]
    apscheduler_alone = CronTrigger.from_crontab("0 2 * * 0", timezone=UTC)
    monday = apscheduler_alone.get_next_fire_time(None, datetime(2026, 11, 10, tzinfo=UTC))
    assert monday.strftime("%m-%d") == "11-16"  # the control: left alone, 0 would be Monday


def test_intervals_count_from_the_last_start():
    assert parse_trigger("every 90 seconds", "UTC", "score").next_after(0) == 90 * 10**9
    assert parse_trigger("Every Hour", "UTC", "score").next_after(0) == 3600 * 10**9
    assert parse_trigger("every 2 days", "UTC", "score").next_after(0) == 172_800 * 10**9


def test_a_leap_day_is_rare_but_not_never():
    assert parse_trigger("0 0 29 2 *", "UTC", "report").next_after(ns(2026, 3, 1)) == ns(
        2028, 2, 29
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 0 31 2 *", "never comes"),
        ("0 0 30 feb *", "never comes"),
        ("61 * * * *", "higher than the maximum"),
        ("* * * *", "4 fields where cron has 5"),
        ("0 0 1 * 1", "crontab reads both together"),
        ("*/0 * * * *", "Increment"),
        ("0 2 * * 5-2", "backwards"),
        ("every", "every 10 minutes"),
        ("every 0 minutes", "every 10 minutes"),
        ("every 999999999999 days", "every 10 minutes"),
        ("every 5 fortnights", "every 10 minutes"),
    ],
)
def test_a_trigger_that_cannot_be_is_named_with_its_setting(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse_trigger(text, "UTC", "audit")
    assert "[schedule] audit" in str(caught.value)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "Europe"])
def test_an_unknown_time_zone_is_named(zone):
    with pytest.raises(ConfigError, match=r"timezone is .* which this machine doesn't know"):
        parse_trigger("* * * * *", zone, "score")
