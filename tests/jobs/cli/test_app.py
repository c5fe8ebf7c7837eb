"""The command line as a whole: every verb has a module, help and a line in the README."""

import json
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


INJECTED = {
    "RINGFENCE_SERVE_PORT": "tcp://10.0.0.1:80",
    "RINGFENCE_CONFORMAL_ALPHA": "tcp://10.0.0.1:80",
    "RINGFENCE_SERVE_SERVICE_HOST": "10.0.0.1",
    "RINGFENCE_GRAPH_PORT": "tcp://10.0.0.1:80",
}
NOTE = (
    "ignored as variables that a cluster sets for its Services: "
    "RINGFENCE_CONFORMAL_ALPHA and 3 more"
)


def type_everywhere(ringfence, arguments, cwd, env):
    """Type a command so that it ends when it has read the configuration: which is wrong."""
    options = {option for one in command_of(arguments).params for option in one.opts}
    if "--config" not in options or arguments == ["demo"]:  # the demo writes that file
        return ringfence(*arguments, "--help", cwd=cwd, env=env)
    required = [one for one in command_of(arguments).params if one.required]
    words = [
        word
        for one in required
        for word in ([one.opts[0], "1"] if one.param_type_name == "option" else ["done"])
    ]
    return ringfence(*arguments, *words, "--config", "wrong.toml", cwd=cwd, env=env, code=1)


def command_of(arguments):
    from typer.main import get_command

    command = get_command(app)
    for name in arguments:
        command = command.commands[name]
    return command


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_what_a_cluster_sets_for_its_services_changes_no_command(ringfence, tmp_path, arguments):
    """One note on stderr, and all else as without these variables."""
    (tmp_path / "wrong.toml").write_text("[schedule]\nscore = 7\n", encoding="utf-8")
    without = type_everywhere(ringfence, arguments, tmp_path, {})
    beside = type_everywhere(ringfence, arguments, tmp_path, INJECTED)
    assert beside.stdout == without.stdout
    assert beside.stderr == f"note: {NOTE}\n{without.stderr}"
    assert list(tmp_path.iterdir()) == [tmp_path / "wrong.toml"]


def test_a_setting_that_no_cluster_sets_is_read(ringfence, tmp_path):
    """The control: what is not an address counts, and is refused where it is wrong."""
    refused = ringfence(
        "status",
        cwd=tmp_path,
        env={"RINGFENCE_GRAPH_LABEL": "A", "RINGFENCE_SERVE_PORT": "x"},
        code=1,
    )
    assert "[serve] port" in refused.stderr
    assert "note" not in refused.stderr


def test_the_note_is_json_beside_json(ringfence, tmp_path):
    told = ringfence("status", "--json", cwd=tmp_path, env=INJECTED, code=1)
    note, error = map(json.loads, told.stderr.splitlines())
    assert note == {"note": NOTE}
    assert error["error"] == "there is no ringfence.toml"  # no graph is described by an address
