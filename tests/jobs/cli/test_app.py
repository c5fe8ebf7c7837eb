"""The command line as a whole: every verb has a module, help and a line in the README."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ringfence import __version__
from ringfence.jobs.cli import commands as verbs
from ringfence.jobs.cli.app import VERBS, app
from ringfence.jobs.config.scheduled_jobs import JOBS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_installed_command_answers_and_looking_never_imports_torch(tmp_path):
    script = (
        "import sys, contextlib\n"
        "from ringfence.jobs.cli.app import app\n"
        "with contextlib.suppress(SystemExit):\n"
        "    app(['--help'])\n"
        "early = {'neo4j', 'rich', 'sqlalchemy', 'numpy'} & set(sys.modules)\n"
        "assert not early, early\n"
        "import ringfence.jobs.views.status, ringfence.jobs.cli.coverage_table\n"
        "import ringfence.jobs.project.audit_store\n"
        "assert 'neo4j' not in sys.modules\n"
        "import ringfence.jobs.auditing.audit\n"
        "import ringfence.jobs.setup.doctor, ringfence.jobs.setup.init\n"
        "heavy = {'torch', 'torch_geometric'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True)
    command = Path(sys.executable).with_name("ringfence")
    told = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert told.stdout == f"ringfence {__version__}\n"


def commands():
    from typer.main import get_command

    def walk(command, arguments):
        subs = getattr(command, "commands", None)
        if not subs:
            yield arguments
        for name, sub in (subs or {}).items():
            yield from walk(sub, [*arguments, name])

    return list(walk(get_command(app), []))


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_command_has_help_json_and_stands_in_the_readme(arguments):
    help_ = CliRunner().invoke(app, [*arguments, "--help"]).output
    assert "--json" in help_
    assert len(help_.split("Options:")[0].split()) > 8
    pages = (ROOT / "README.md").read_text() + (ROOT / "docs/embedded-neo4j.md").read_text()
    assert "ringfence " + " ".join(arguments) in pages


def test_every_verb_is_one_module_and_every_module_a_verb():
    modules = {path.stem for path in Path(verbs.__file__).parent.glob("*/[!_]*.py")}
    assert modules == set(VERBS)


def test_the_help_lists_every_verb_in_order_with_a_whole_line():
    listed = CliRunner().invoke(app, ["--help"]).output.split("Commands:")[1]
    listed = listed.split("Exit codes:")[0]
    lines = dict(re.findall(r"^  (\w+) +(\S.*)$", listed, re.MULTILINE))
    assert list(lines) == list(VERBS)
    assert all(line.endswith(".") and "..." not in line for line in lines.values()), lines


def test_the_readmes_table_has_a_row_for_every_verb_and_no_other():
    readme = (ROOT / "README.md").read_text()
    assert re.findall(r"^\| `ringfence (\w+)` \| \S", readme, re.MULTILINE) == list(VERBS)


def test_the_help_of_schedule_names_every_job():
    help_ = CliRunner().invoke(app, ["schedule", "--help"]).output
    assert all(job in help_ for job in JOBS)
