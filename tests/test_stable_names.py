"""The names on UPGRADING.md's stable list are still there, compared with an earlier commit's."""

import json
import re
from pathlib import Path

import pytest

from tests.stable_names import REFERENCE, collect, gone

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def now():
    return collect()


@pytest.fixture(scope="module")
def reference():
    return json.loads(REFERENCE.read_text(encoding="utf-8"))


def test_no_stable_name_is_gone(reference, now):
    assert gone(reference, now) == []


def test_a_name_that_goes_is_named_and_a_new_one_is_welcome(reference, now):
    for kind, names in now.items():
        without_first = now | {kind: [*names[1:], "a name that is new"]}
        assert gone(now, without_first) == [f"{kind}: {names[0]}"]
    assert gone(reference, {}) == [
        f"{kind}: {n}" for kind, names in reference.items() for n in names
    ]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("verbs and options", "ringfence train --promote"),
        ("exit codes", "4 ALARM"),
        ("keys of --json", "score run.threshold"),
        ("keys of --json", "status coverage.verdict"),
        ("settings", "[conformal] alpha"),
        ("settings", "[[graph.nodes]] role"),
        ("graph", "MAY_BE.in_set"),
        ("graph", "CoverageAudit.verdict"),
        ("SQL views", "ringfence_coverage.own_promise"),
        ("metrics", "ringfence_coverage_ratio"),
        ("Python", "Project.score"),
        ("Python", "ringfence.models.scores.aps(u)"),
    ],
)
def test_the_reference_has_what_the_list_promises(reference, kind, name):
    assert name in reference[kind]


def test_every_line_of_the_list_has_its_names(reference):
    text = (ROOT / "UPGRADING.md").read_text(encoding="utf-8")
    table = text.split("| kept stable |")[1].split("\n\n")[0]
    lines = [line for line in table.splitlines() if re.match(r"\| [^-]", line)]
    assert len(lines) == 6
    assert all(reference.values())
