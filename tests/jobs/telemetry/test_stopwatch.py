"""Seconds of a run by step: parts of a step are steps of their own, and nothing counts twice."""

from ringfence.jobs.dashboard.pages.run import in_order
from ringfence.jobs.telemetry.stopwatch import Stopwatch


def test_parts_of_a_step_are_taken_out_of_it(monkeypatch):
    clock = iter([10.0, 16.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    watch = Stopwatch(started=next(clock))
    watch.lap("forward", {"send": 4.0, "seal": 0.5})
    assert watch.seconds == {"forward: send": 4.0, "forward: seal": 0.5, "forward": 1.5}


def test_parts_stand_with_their_step():
    found = in_order({"decide": 1, "forward: send": 2, "forward": 3, "read": 4})
    assert list(found) == ["read", "forward: send", "forward", "decide"]
