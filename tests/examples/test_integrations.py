"""The examples for other schedulers agree with our exit codes and locks; they run elsewhere.

`make test-integrations` runs them in the real packages, which have environments of their own.
"""

import ast
import doctest
import re
from pathlib import Path

import pytest

from ringfence.jobs.cli.app import VERBS
from ringfence.jobs.cli.exit_codes import ExitCode
from tests.integrations import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = {
    "airflow": "ringfence_dag.py",
    "dagster": "ringfence_assets.py",
    "prefect": "ringfence_flow.py",
}
NAMES = [example.name for example in run.EXAMPLES]


def constants(tree):
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def test_the_examples_of_the_trial_hold():
    assert doctest.testmod(run).failed == 0
    assert set(NAMES) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_an_example_types_verbs_of_ours_and_knows_the_exit_code_of_an_alarm(name):
    tree = ast.parse((EXAMPLES / name / FILES[name]).read_text("utf-8"))
    assert {"score", "audit", "verify"} <= constants(tree) & set(VERBS)
    assert int(ExitCode.ALARM) in constants(tree)
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [module for module in imported if (module or "").startswith("ringfence")]


@pytest.mark.parametrize("name", FILES)
def test_its_lock_has_hashes_and_names_no_address(name):
    text = (EXAMPLES / name / "requirements.lock").read_text("utf-8")
    blocks = re.split(r"^(?=\w)", text, flags=re.M)[1:]
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    wanted = (EXAMPLES / name / "requirements.in").read_text("utf-8").split()
    for requirement in wanted:
        package = re.match(r"[\w.-]+", requirement)[0]
        assert re.search(rf"^{re.escape(package)}==", text, re.M), package
