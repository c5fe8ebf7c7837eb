"""Every printed command can be typed as it stands."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.jobs.cli.app import VERBS
from ringfence.jobs.cli.commands.record.query import print_rows
from ringfence.jobs.cli.commands.setup.doctor import print_findings
from ringfence.jobs.cli.console import say
from ringfence.jobs.cli.exit_codes import MEANINGS
from ringfence.jobs.cli.next_step_text import complete_commands, config_argument
from ringfence.jobs.samples.accounts import sample_toml
from ringfence.jobs.setup.finding import Finding

ROOT = Path(__file__).resolve().parents[3]
COMMAND = Path(sys.executable).with_name("ringfence")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ringfence doctor", "rf doctor --config a.toml"),
        ("x, then: ringfence reconcile --repair", "x, then: rf reconcile --config a.toml --repair"),
        ("ringfence neo4j start", "rf neo4j start --config a.toml"),
        ("ringfence init", "rf init"),
        ("ringfence score --config b.toml", "rf score --config b.toml"),
        ("ringfence keeps it", "ringfence keeps it"),
        ("see .venv/bin/ringfence doctor", "see .venv/bin/ringfence doctor"),
        ("pip install ringfence", "pip install ringfence"),
        ("", ""),
    ],
)
def test_commands_in_a_text_get_program_and_configuration(text, expected):
    assert complete_commands(text, Path("a.toml"), "rf", list(VERBS)) == expected


@pytest.mark.parametrize(
    "words", [["score", "--config", "a b"], ["score", "-c", "a b"], ["score", "--config=a b"]]
)
def test_the_configuration_is_found_among_a_commands_words(words):
    assert config_argument(words) == Path("a b")


def test_lines_for_people_carry_program_and_configuration(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(COMMAND), "models", "--config", "a b.toml"])
    say("Project p has no model yet. Next: ringfence train.")
    said = capsys.readouterr().out
    program = said.split("Next: ")[1].split()[0]
    assert Path(program).name == "ringfence"
    assert said.endswith("ringfence train --config 'a b.toml'.\n")


def test_doctor_s_fixes_can_be_pasted_whatever_the_width(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "argv", [str(COMMAND), "doctor", "-c", "far/away/ringfence.toml"])
    fix = "ringfence migrate"
    print_findings([Finding("error", "a table is missing " * 5, fix), Finding("ok", "fine", "")])
    said = capsys.readouterr().out
    assert "ringfence migrate --config far/away/ringfence.toml\n" in said


def test_what_is_shown_to_be_pasted_is_a_command_and_nothing_else(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ringfence", "doctor"])
    fixes = (
        "correct [graph] label, or: ringfence init",
        'ringfence promote 7 --reason "…", to take it into use',
        "ringfence train, to have it",
        "ringfence migrate --no-such-option",
        "pip install 'ringfence[ray]', or [engine] kind = \"local\"",
    )
    print_findings([Finding("warning", "x", fix) for fix in fixes])
    pasted = re.findall(r"^To paste: (.+)$", capsys.readouterr().out, re.M)
    assert pasted == ["ringfence init", "ringfence train", "pip install 'ringfence[ray]'"]


def test_keys_in_a_query_s_rows_are_digits(capsys):
    print_rows([{"id": 2617, "n": 3}])
    said = capsys.readouterr().out
    assert "2617" in said
    assert "2,617" not in said


@pytest.mark.slow
def test_the_next_step_of_an_error_runs_when_it_is_pasted(tmp_path):
    """A missing file is answered by a command; that command is one this shell can run."""
    config = tmp_path / "my own.toml"
    config.write_text(sample_toml("embedded", "p"))
    ended = subprocess.run(
        [COMMAND, "status", "--config", config], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 1
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("next:")]
    words = shlex.split(line[line.index(str(COMMAND)) :])
    assert config.samefile(tmp_path / words[words.index("--config") + 1])
    assert subprocess.run([*words, "--help"], cwd=tmp_path, capture_output=True).returncode == 0


def test_python_m_is_the_same_program(tmp_path):
    told = subprocess.run(
        [sys.executable, "-m", "ringfence", "--version"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.startswith("ringfence ")


@pytest.mark.parametrize("page", ["README.md", "UPGRADING.md"])
def test_the_exit_codes_stand_in_the_pages_and_in_the_help(page):
    text = (ROOT / page).read_text()
    help_ = " ".join(
        subprocess.run([COMMAND, "--help"], capture_output=True, text=True).stdout.split()
    )
    for code, meaning in MEANINGS.items():
        assert f"{code:d} {meaning}" in help_
        row = next(line for line in text.splitlines() if line.startswith(f"| {code:d} |"))
        assert meaning in row or row.endswith("| the same |")


def test_an_unknown_option_is_a_usage_error():
    ended = subprocess.run([COMMAND, "score", "--no-such"], capture_output=True)
    assert ended.returncode == 2
