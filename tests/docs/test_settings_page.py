"""The page of twelve settings names settings that exist, and its three ways are what they say."""

import re
import tomllib
from pathlib import Path

from ringfence.jobs.config.load import known_keys, load_values
from ringfence.jobs.config.settings import ConformalSettings

PAGE = (Path(__file__).resolve().parents[2] / "docs/settings.md").read_text(encoding="utf-8")
GRAPH = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}
ROWS = re.findall(r"^\| (`\[.+?) \|", PAGE, re.M)


def test_twelve_settings_are_named_and_all_exist():
    assert len(ROWS) == 12
    known = set(known_keys())
    for row in ROWS:
        section, name = re.match(r"`\[([a-z0-9.]+)\] ?(\w*)", row).groups()
        section, _, table = section.partition(".")
        names = [name or table, *re.findall(r", `(\w+)`", row)]
        assert {(section, one) for one in names} <= known, row


def test_the_three_ways_can_be_read_and_are_what_they_say(tmp_path):
    paper, papers_own, living, per_class = (
        load_values(
            tomllib.loads(block) | {"graph": dict(GRAPH)}, tmp_path / "r.toml", {}
        ).conformal
        for block in re.findall(r"^```toml\n(.+?)^```", PAGE, re.M | re.S)
    )
    assert (paper.calibration_set, paper.adapt, paper.rule) == ("frozen", False, "auto")
    assert (papers_own.calibration_set, papers_own.adapt) == ("frozen", False)
    assert papers_own.rule == "NodeEx"
    without = ConformalSettings()
    assert living.model_dump(exclude={"mode"}) == without.model_dump(exclude={"mode"})
    assert (per_class.promise, per_class.classes) == ("class", {"mule": 0.05})
