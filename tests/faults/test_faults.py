"""The fault harness in short, by a fixed seed; `make test-faults` has two thousand faults."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import astuple
from itertools import product
from pathlib import Path

import pytest

from tests.faults.report import ControlResult, Report, Tally, read_report
from tests.faults.report import main as join_reports

ROOT = Path(__file__).resolve().parents[2]


def harness(neo4j_server, postgres_server, report, *options):
    """Run the harness as its command on the session's servers and return what it reports."""
    environment = {
        **os.environ,
        "RINGFENCE_TEST_NEO4J_URI": neo4j_server.uri,
        "RINGFENCE_TEST_NEO4J_USER": neo4j_server.user,
        "RINGFENCE_TEST_NEO4J_PASSWORD": neo4j_server.password,
        "RINGFENCE_TEST_POSTGRES_URL": postgres_server.render_as_string(hide_password=False),
    }
    command = [sys.executable, "-m", "tests.faults.run", "--json", str(report), *options]
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert report.exists(), ended.stderr[-3000:]
    return ended.returncode, ended.stdout, read_report(report.read_text())


@pytest.mark.usefixtures("graph")
def test_faults_lose_double_and_change_nothing_and_a_blinded_run_is_seen(
    neo4j_server, postgres_server, tmp_path
):
    code, printed, report = harness(
        neo4j_server, postgres_server, tmp_path / "report.json",
        "--sequences", "1", "--full-disks", "0", "--controls", "no_recovery",
    )  # fmt: skip
    lanes = {(tally.form, tally.store) for tally in report.tallies}
    assert lanes == set(product(("one label", "several labels"), ("sqlite", "postgresql")))
    for tally in report.tallies:
        assert not tally.violations.total(), tally.examples
        assert tally.faults.total() >= 1
        assert tally.predictions.total() > 10
        assert f"| {tally.form} | {tally.store} | **all faults** |" in printed
    for form, without, violations in map(astuple, report.controls):
        assert (without, violations["lost"] > 0) == ("no_recovery", True), form
    assert len(report.controls) == 2
    assert code == 0


def test_a_violation_and_a_control_that_saw_nothing_fail_the_harness_and_stand_in_its_table(
    tmp_path, capsys
):
    files = [tmp_path / "sqlite.json", tmp_path / "postgresql.json"]
    sound = Tally("one label", "sqlite")
    broken = Tally("several labels", "postgresql", faults=Counter(freeze=2))
    broken.note_violations("lost", ["node 5", "node 6"], ["kill_at_a_time", "freeze"])
    seen = ControlResult("one label", "no_recovery", {"lost": 3})
    blind = ControlResult("several labels", "no_recovery", {})
    for tally, control, codes in ((sound, seen, 0), (broken, seen, 1), (sound, blind, 1)):
        files[0].write_text(Report([tally], [control]).as_json())
        files[1].write_text(Report([sound], []).as_json())
        assert join_reports(list(map(str, files))) == codes
    printed = capsys.readouterr().out
    assert "| several labels | postgresql | freeze | 2 | 0 | 0 | 2 |" in printed
    assert "kill_at_a_time + freeze: lost: node 5" in printed
    assert "| several labels | no recovery | NONE: the checker is blind |" in printed
    files[1].unlink()  # a run that came to no end
    files[0].write_text(Report([sound], [seen]).as_json())
    assert join_reports(list(map(str, files))) == 1


TAKEN_AWAY = """
import sys
from tests.faults import breaks

def names():
    modules = [(name, module) for name, module in sys.modules.items() if "ringfence" in name]
    return {f"{name}.{attribute}" for name, module in modules for attribute in vars(module)}

def add_a_name():
    breaks.score.no_such_name = 1

for take_away in BREAKS:
    before = names()
    take_away()
    added = names() - before
    assert not added, f"{take_away.__name__} replaces what is not there: {added}"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("breaks", "exit_code"), [("breaks.BREAKS.values()", 0), ("[add_a_name]", 1)]
)
def test_the_protections_that_controls_take_away_are_there(breaks, exit_code):
    """A break that replaces a name which has moved would leave the protection where it is."""
    code = TAKEN_AWAY.replace("BREAKS", breaks)
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == exit_code, ended.stderr
