"""The scheduler's log: every event that the code can write stands in the guide."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OUTCOMES = {"done", "alarm", "failed", "held", "stopped"}


def test_every_event_stands_in_the_guide():
    files = [*(ROOT / "jobs/schedule").glob("*.py"), ROOT / "jobs/cli/commands/runs/schedule.py"]
    code = "".join(path.read_text("utf-8") for path in files)
    events = set(re.findall(r'log(?:_event)?\(\s*logging\.\w+, "([\w ]+)"', code)) | OUTCOMES
    assert len(events) > 15
    guide = " ".join((ROOT / "docs/scheduling.md").read_text("utf-8").split())
    listed = guide.partition("one object per line): ")[2].partition(". It holds")[0].split(", ")
    assert set(listed) == events
