"""`make test-wheel` says which Pythons ran, which failed and which the machine lacks."""

import doctest
import os
import sys

import pytest

from tests.packaging import try_wheel
from tests.packaging.try_wheel import Failed, Trial, find_python, step, table


def test_the_examples_hold():
    assert doctest.testmod(try_wheel).failed == 0


def test_this_python_is_found_and_one_that_does_not_exist_is_not(tmp_path, monkeypatch):
    own = ".".join(map(str, sys.version_info[:2]))
    assert find_python(own, "uv").exists()
    nothing = tmp_path / "uv"
    nothing.write_text("#!/bin/sh\nexit 2\n")
    nothing.chmod(0o755)
    assert find_python("3.99", nothing) is None
    kept = tmp_path / "versions/3.99.1/bin/python3.99"
    kept.parent.mkdir(parents=True)
    kept.touch()
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert find_python("3.99", nothing) == kept


def test_a_step_that_fails_is_a_failure_of_that_python(tmp_path, monkeypatch):
    """The negative control: what does not install is not said to have run."""

    def refuse(*_given):
        raise Failed("install ended with 1: no matching distribution")

    monkeypatch.setattr(try_wheel, "make_environment", refuse)
    trial = try_wheel.try_python("3.11", sys.executable, None, tmp_path, "uv")
    assert trial.failed
    assert "no matching distribution" in table([trial])
    assert not Trial("3.12", "untested", "", ran=False).failed


LEADING_ASTRAY = {
    "COLUMNS": "300",
    "NEO4J_URI": "bolt://elsewhere",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": "/checkout",
    "PYTHONWARNINGS": "ignore",
    "RINGFENCE_CONFIG": "other.toml",
    "SOURCE_DATE_EPOCH": "0",
    "UV_PYTHON": "3.9",
    "VIRTUAL_ENV": "/checkout/.venv",
}


def test_no_step_sees_variables_of_whoever_called(tmp_path, monkeypatch):
    for name, value in LEADING_ASTRAY.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    seen = step("env", "env", cwd=tmp_path)
    names = {line.partition("=")[0] for line in seen.splitlines()}
    assert names.isdisjoint(LEADING_ASTRAY)
    assert {"PATH", "HOME", "HTTPS_PROXY"} <= names  # the control: what a download needs
    assert set(LEADING_ASTRAY) <= set(os.environ)


def test_the_words_of_a_failed_step_are_kept(tmp_path):
    with pytest.raises(Failed, match="demo ended with 1: no graph"):
        step("demo", sys.executable, "-c", "import sys; sys.exit('no graph')", cwd=tmp_path)
