"""What a person sees while waiting, where stderr is no terminal."""

from ringfence.jobs import display


def test_progress_says_how_fast_and_how_long(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    with display.progress("reading") as report:
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
