"""The schedule's table on SQLite and PostgreSQL: what is due, who may run it, how it ended."""

import threading

from sqlalchemy import update

from ringfence.connector.store import schedule, tables
from ringfence.connector.store.schedule import Ended, Planned
from ringfence.connector.times import NANOSECONDS

MINUTE = 60 * NANOSECONDS


def ten_minutes_later(ns):
    return ns + 10 * MINUTE


def job(name="score", trigger="every 10 minutes", next_after=ten_minutes_later, at_once=True):
    return Planned(name, trigger, "UTC", next_after, at_once)


def row(store, name="score"):
    with store.reading() as connection:
        return next(one for one in schedule.rows(connection, "p") if one.job == name)


def make_due(store, name="score"):
    with store.transaction() as connection:
        connection.execute(
            update(tables.schedule)
            .where(tables.schedule.c.job == name)
            .values(due_ns=store.now_ns(connection) - MINUTE)
        )


def test_a_new_interval_is_due_at_once_and_a_new_cron_line_at_its_time(store):
    schedule.plan(store, "p", [job(), job("audit", "0 2 * * *", at_once=False)])
    assert schedule.due(store, "p") == ["score"]
    assert schedule.due(store, "another project") == []


def test_an_overdue_job_is_claimed_once_and_due_again_after_its_trigger(store):
    schedule.plan(store, "p", [job()])
    claim = schedule.claim(store, "p", "score", "a", 60)
    assert schedule.claim(store, "p", "score", "b", 60) is None
    assert schedule.due(store, "p") == []
    assert schedule.finish(store, claim, Ended("done", "fine"), ten_minutes_later)
    assert row(store).due_ns == claim.started_ns + 10 * MINUTE
    assert schedule.claim(store, "p", "score", "b", 60) is None
    assert (row(store).outcome, row(store).words, row(store).failures) == ("done", "fine", 0)


def test_a_ring_during_a_run_is_run_once_right_after(store):
    schedule.plan(store, "p", [job()])
    claim = schedule.claim(store, "p", "score", "a", 60)
    schedule.finish(store, claim, Ended("done", ""), lambda started: started + 1)
    assert schedule.due(store, "p") == ["score"]


def test_a_claim_whose_process_died_runs_out_and_the_job_is_due_again(store):
    schedule.plan(store, "p", [job()])
    dead = schedule.claim(store, "p", "score", "dead", 0.0)
    assert schedule.due(store, "p") == ["score"]
    alive = schedule.claim(store, "p", "score", "alive", 60)
    assert not schedule.prolong(store, dead, 60)
    assert not schedule.finish(store, dead, Ended("done", "too late"), ten_minutes_later)
    assert row(store).owner == "alive"
    assert schedule.finish(store, alive, Ended("done", "mine"), ten_minutes_later)
    assert row(store).words == "mine"


def test_a_heartbeat_keeps_a_claim(store):
    schedule.plan(store, "p", [job()])
    held = schedule.claim(store, "p", "score", "slow", 0.0)
    assert schedule.prolong(store, held, 60)
    assert schedule.claim(store, "p", "score", "other", 60) is None


def race(store, racers=8):
    barrier, won = threading.Barrier(racers), []

    def run(number):
        barrier.wait()
        won.append(schedule.claim(store, "p", "score", str(number), 60))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(one is not None for one in won)


def test_of_many_schedulers_that_ring_together_one_runs_the_job(store):
    schedule.plan(store, "p", [job()])
    for _ in range(3):
        assert race(store) == 1
        with store.transaction() as connection:
            connection.execute(update(tables.schedule).values(claimed_until_ns=None))


def test_without_the_condition_several_would_run_it(store, monkeypatch):
    """The negative control of the race."""
    schedule.plan(store, "p", [job()])
    monkeypatch.setattr(schedule, "_free_and_due", lambda _now: ())
    assert race(store) > 1


def test_failures_are_counted_kept_and_tried_again_soon(store):
    schedule.plan(store, "p", [job()])
    for count in (1, 2):
        make_due(store)
        claim = schedule.claim(store, "p", "score", "a", 60)
        schedule.finish(store, claim, Ended("failed", "no server", 60.0), ten_minutes_later)
        assert row(store).failures == count
        assert row(store).due_ns == row(store).ended_ns + MINUTE
    schedule.note_failure(store, "p", "score", "no store")
    assert row(store).failures == 3
    make_due(store)
    claim = schedule.claim(store, "p", "score", "a", 60)
    schedule.finish(store, claim, Ended("done", ""), ten_minutes_later)
    assert (row(store).failures, row(store).failed_words) == (0, "no store")


def test_a_failure_that_time_does_not_heal_waits_for_its_next_ring(store):
    schedule.plan(store, "p", [job()])
    claim = schedule.claim(store, "p", "score", "a", 60)
    schedule.finish(store, claim, Ended("failed", "no model"), ten_minutes_later)
    assert row(store).due_ns == claim.started_ns + 10 * MINUTE


def test_a_changed_trigger_counts_from_now_but_an_overdue_job_stays_overdue(store):
    schedule.plan(store, "p", [job(at_once=False), job("audit")])
    schedule.plan(
        store,
        "p",
        [job(trigger="every day", next_after=lambda ns: ns + 1440 * MINUTE), job("audit")],
    )
    with store.reading() as connection:
        now = store.now_ns(connection)
    assert row(store).trigger == "every day"
    assert row(store).due_ns > now + 1000 * MINUTE
    assert schedule.due(store, "p") == ["audit"]


def test_a_clock_that_was_set_back_does_not_delay_a_job(store):
    schedule.plan(store, "p", [job(at_once=False)])
    with store.transaction() as connection:
        ahead = store.now_ns(connection) + 6_000 * MINUTE
        connection.execute(update(tables.schedule).values(due_ns=ahead))
    schedule.plan(store, "p", [job()])
    with store.reading() as connection:
        assert row(store).due_ns <= store.now_ns(connection) + 10 * MINUTE


def test_a_job_taken_out_of_the_configuration_is_off_until_it_comes_back(store):
    schedule.plan(store, "p", [job(), job("audit")])
    schedule.plan(store, "p", [job("audit")])
    assert row(store).due_ns is None
    assert schedule.due(store, "p") == ["audit"]
    assert schedule.claim(store, "p", "score", "a", 60) is None
    schedule.plan(store, "p", [job(), job("audit")])
    assert row(store).due_ns is not None
