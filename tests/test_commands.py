"""The command line as a person types it: real processes, exit codes, words, JSON."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ringfence import __version__
from ringfence.jobs.cli import app, main
from ringfence.jobs.sample_graph import sample_toml

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Done:
    stdout: str
    stderr: str


@pytest.fixture
def ringfence(monkeypatch, capfd):
    """Type a command in this process, with an environment and a folder of its own."""

    def type_(*words, cwd, env=None, code=0):
        with monkeypatch.context() as here:
            for name in [name for name in os.environ if name.startswith("RINGFENCE")]:
                here.delenv(name)
            for name, value in (env or {}).items():
                here.setenv(name, value)
            here.chdir(cwd)
            here.setattr(sys, "argv", ["ringfence", *words])
            capfd.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
            done = Done(*capfd.readouterr())
        assert (ended.value.code or 0) == code, done.stdout + done.stderr
        return done

    return type_


@pytest.fixture
def project(graph, tmp_path):
    (tmp_path / "ringfence.toml").write_text(
        sample_toml(graph.uri, "cli").replace("[model]", "[model]\nmax_epochs = 20")
    )
    user, password = graph.auth
    return tmp_path, {"RINGFENCE_NEO4J_PASSWORD": password, "RINGFENCE_NEO4J_USER": user}


def test_the_installed_command_answers_and_looking_never_imports_torch(tmp_path):
    script = (
        "import sys, contextlib\n"
        "from ringfence.jobs import cli\n"
        "with contextlib.suppress(SystemExit):\n"
        "    cli.app(['--help'])\n"
        "assert 'neo4j' not in sys.modules\n"
        "import ringfence.jobs.status, ringfence.jobs.printing, ringfence.jobs.audit_store\n"
        "assert 'neo4j' not in sys.modules\n"
        "import ringfence.jobs.auditing, ringfence.jobs.doctor, ringfence.jobs.init\n"
        "heavy = {'torch', 'torch_geometric'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True)
    command = Path(sys.executable).with_name("ringfence")
    told = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert told.stdout == f"ringfence {__version__}\n"


def commands():
    from typer.main import get_command

    def walk(command, words):
        subs = getattr(command, "commands", None)
        if not subs:
            yield words
        for name, sub in (subs or {}).items():
            yield from walk(sub, [*words, name])

    return list(walk(get_command(app), []))


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_has_help_json_and_stands_in_the_readme(words):
    help_ = CliRunner().invoke(app, [*words, "--help"]).output
    assert "--json" in help_
    assert len(help_.split("Options:")[0].split()) > 8
    pages = (ROOT / "README.md").read_text() + (ROOT / "docs/embedded-neo4j.md").read_text()
    assert "ringfence " + " ".join(words) in pages


def test_the_whole_line_by_commands(ringfence, project):
    folder, env = project
    loaded = ringfence("sample", "--nodes", "600", "--json", cwd=folder, env=env)
    assert json.loads(loaded.stdout)["nodes"] == 600
    first = json.loads(ringfence("migrate", "--json", cwd=folder, env=env).stdout)["done"]
    assert any("SQL 0001" in line for line in first)
    assert "nothing to do" in ringfence("migrate", cwd=folder, env=env).stdout
    assert "Trained GCN" in ringfence("train", cwd=folder, env=env).stdout
    scored = ringfence("score", cwd=folder, env=env).stdout
    assert "NodeEx" in scored
    assert "naive" in scored
    assert "not enough known yet" in ringfence("audit", cwd=folder, env=env).stdout
    status = json.loads(ringfence("status", "--json", cwd=folder, env=env).stdout)
    assert status["runs"][0]["state"] == "applied"
    assert status["evaluated"] == status["unknown"] == status["runs"][0]["n_evaluated"]
    assert "Last runs" in ringfence("status", cwd=folder, env=env).stdout
    rows = ringfence(
        "query",
        "MATCH (n)-[r:MAY_BE]->(c:RingfenceClass) RETURN n.id AS id, c.name AS class, r.p AS p",
        "--json",
        cwd=folder,
        env=env,
    )
    assert all(0.1 < row["p"] <= 1 for row in json.loads(rows.stdout))
    doctor = json.loads(ringfence("doctor", "--json", cwd=folder, env=env).stdout)
    assert {finding["level"] for finding in doctor} == {"ok"}


def test_a_broken_promise_is_exit_code_two(ringfence, project, graph):
    folder, env = project
    ringfence("sample", "--nodes", "600", cwd=folder, env=env)
    for verb in ("migrate", "train", "score"):
        ringfence(verb, cwd=folder, env=env)
    graph.run("MATCH (n:Account)-[:EVALUATED]->() SET n.kind = 'unheard of'")
    assert "broken" in ringfence("audit", cwd=folder, env=env, code=2).stdout


def test_errors_say_what_was_found_needed_and_what_to_type(ringfence, project, tmp_path_factory):
    folder, env = project
    missing = ringfence("score", cwd=tmp_path_factory.mktemp("empty"), code=1)
    assert "ringfence init" in missing.stderr
    assert "Traceback" not in missing.stderr
    wrong = ringfence("status", cwd=folder, env={"RINGFENCE_CONFORMAL_ALPHA": "7"}, code=1)
    assert "alpha" in wrong.stderr
    refused = ringfence(
        "migrate", "--json", cwd=folder, env=env | {"RINGFENCE_NEO4J_PASSWORD": "wrong"}, code=1
    )
    assert json.loads(refused.stderr)["next"].startswith("export RINGFENCE_NEO4J_PASSWORD")
    unmigrated = ringfence("train", cwd=folder, env=env, code=1)
    assert "ringfence migrate" in unmigrated.stderr
    unwritten = ringfence("query", "MATCH (n) DETACH DELETE n", cwd=folder, env=env, code=1)
    assert "refused" in unwritten.stderr


def test_init_fills_in_the_file_and_doctor_finds_it_healthy(
    ringfence, project, tmp_path_factory, graph
):
    folder, env = project
    ringfence("sample", "--nodes", "600", cwd=folder, env=env)
    own = tmp_path_factory.mktemp("own")
    told = ringfence("init", "--uri", graph.uri, cwd=own, env=env)
    assert "ringfence doctor" in told.stdout
    text = (own / "ringfence.toml").read_text()
    for line in (
        'label = "Account"',
        'key = "id"',
        'features = "features"',
        'class_property = "kind"',
        'created_at = "created_at"',
        'type = "PAID"',
    ):
        assert line in text
    assert re.search(r'time_kind = "zoned"  # created_at is a ZONED DATETIME', text)
    refused = ringfence("init", "--uri", graph.uri, cwd=own, env=env, code=1)
    assert "--force" in refused.stderr
    before = ringfence("doctor", cwd=own, env=env, code=1).stdout
    assert "ringfence migrate" in before
    ringfence("migrate", cwd=own, env=env)
    after = json.loads(ringfence("doctor", "--json", cwd=own, env=env).stdout)
    levels = {finding["level"]: finding for finding in after}
    assert "error" not in levels
    assert "no trained model" in levels["warning"]["text"]


def test_doctor_names_every_mistake_with_its_fix(ringfence, project, graph):
    folder, env = project
    ringfence("sample", "--nodes", "600", cwd=folder, env=env)
    ringfence("migrate", cwd=folder, env=env)
    wrong = {
        "RINGFENCE_GRAPH_KEY": "identity",
        "RINGFENCE_GRAPH_FEATURES": "kind",
        "RINGFENCE_GRAPH_CLASS_PROPERTY": "colour",
        "RINGFENCE_GRAPH_TIME_KIND": "local",
        "RINGFENCE_GRAPH_RELATIONSHIPS": '[{"type": "OWES"}]',
        "RINGFENCE_SCHEDULE_SCORE": "0 0 31 2 *",
    }
    found = json.loads(ringfence("doctor", "--json", cwd=folder, env=env | wrong, code=1).stdout)
    said = " ".join(f"{one['text']} -> {one['fix']}" for one in found if one["level"] != "ok")
    for words in (
        "identity",
        "features needs a list of numbers",
        "colour",
        "time_kind",
        "OWES",
        "PAID",
        "a time that never comes",
    ):
        assert words in said
    nowhere = json.loads(
        ringfence(
            "doctor", "--json", cwd=folder, env=env | {"RINGFENCE_GRAPH_LABEL": "Akkount"}, code=1
        ).stdout
    )
    assert any("Account (600)" in one["text"] for one in nowhere)


def test_the_demo_runs_by_itself_and_its_sets_answer_the_readmes_query(ringfence, tmp_path):
    done = ringfence("demo", "--no-serve", "--nodes", "1500", "--arriving", "2", cwd=tmp_path)
    for words in (
        "Thresholds move",
        "naive",
        "Coverage of the accounts",
        "kept",
        "Where to look next",
    ):
        assert words in done.stdout
    readme = (ROOT / "README.md").read_text()
    (cypher,) = re.findall(r'ringfence query "(.*?)" --config', readme, re.DOTALL)[:1]
    rows = ringfence(
        "query", cypher, "--config", ".ringfence/demo/ringfence.toml", "--json", cwd=tmp_path
    )
    assert len(json.loads(rows.stdout)) == 10
    again = ringfence(
        "demo", "--no-serve", "--nodes", "1500", "--arriving", "2", "--json", cwd=tmp_path
    )
    report = json.loads(again.stdout)
    assert [run["seq"] for run in report["runs"]] == [1, 2, 3]
