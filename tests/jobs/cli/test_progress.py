"""What a person sees while waiting, where stderr is no terminal."""

import doctest

from ringfence.jobs.cli import options, progress


def test_progress_says_how_fast_and_how_long(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.show_progress("reading") as report:
        report("nodes", 500_000, 1_000_000)  # an earlier attempt brought these
        now[0] += 4.0
        report("nodes", 600_000, 1_000_000)
        now[0] += 0.5
        report("nodes", 610_000, 1_000_000)  # too soon after the last line
        now[0] += 2.0
        report("new nodes", 7, 0)  # the first of its kind has no rate yet
    assert capsys.readouterr().err.splitlines() == [
        "  nodes: 600,000 of 1,000,000, 25,000/s, 16 s left",
        "  new nodes: 7",
    ]


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(progress).failed == 0
    assert doctest.testmod(options).failed == 0
