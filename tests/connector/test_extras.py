"""Extras are those of pyproject.toml, and a missing package is said with what to type."""

import importlib
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ringfence.connector import extras
from ringfence.connector.errors import ConfigError
from ringfence.connector.extras import (
    EXTRAS,
    BrokenPackage,
    broken_packages,
    missing_packages,
    require_extra,
    require_imports,
)
from ringfence.connector.store.engine import open_store
from ringfence.jobs.cli.app import app

PROJECT = tomllib.loads(
    (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
)["project"]


def names(requirements):
    return {re.match(r"[\w.-]+", one)[0] for one in requirements}


def without(monkeypatch, *modules):
    """Let these modules be as if they were not installed."""
    installed = extras._is_installed
    monkeypatch.setattr(
        extras, "_is_installed", lambda name: name not in modules and installed(name)
    )


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_names_the_packages_of_pyproject(extra):
    assert set(EXTRAS[extra].values()) == names(PROJECT["optional-dependencies"][extra])


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_tests_have_every_extra(extra):
    assert missing_packages(extra) == ()
    require_extra(extra, "to test")


def test_scoring_brings_no_torch_and_the_demo_does():
    assert names(PROJECT["dependencies"]).isdisjoint(EXTRAS["train"].values())
    (demo,) = PROJECT["optional-dependencies"]["demo"]
    assert "train" in re.findall(r"\w+", demo.partition("[")[2])


def test_a_missing_extra_is_said_with_what_to_type(monkeypatch):
    without(monkeypatch, *EXTRAS["train"])
    with pytest.raises(ConfigError) as refused:
        require_extra("train", "to train a model")
    assert str(refused.value) == (
        "scikit-learn, torch and torch-geometric are not installed\n"
        'needed: the extra "train", to train a model\n'
        "next:   pip install 'ringfence[train]'"
    )


def test_a_half_installed_extra_names_what_is_missing(monkeypatch):
    without(monkeypatch, "torch_geometric")
    with pytest.raises(ConfigError, match=r"^torch-geometric is not installed"):
        require_extra("train", "to train a model")


@pytest.fixture
def half_installed(tmp_path, monkeypatch):
    """A package of an extra that is there, and whose import fails as one without its library."""
    package = tmp_path / "half_of_it"
    package.mkdir()
    (package / "__init__.py").write_text("raise OSError('libhalf.so.1: cannot open\\nmore')\n")
    (tmp_path / "whole_of_it.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delitem(sys.modules, "whole_of_it", raising=False)
    monkeypatch.setitem(EXTRAS, "half", {"whole_of_it": "whole-of-it", "half_of_it": "half-of-it"})


def test_a_package_that_fails_while_it_is_imported_is_said_as_such(half_installed):
    require_extra("half", "to test")  # the control: it is there
    with pytest.raises(ConfigError) as refused:
        require_imports("half", "to test")
    assert str(refused.value) == (
        "half-of-it is installed, but can't be imported (OSError: libhalf.so.1: cannot open)\n"
        'needed: a whole installation of the extra "half", to test\n'
        "next:   pip install --force-reinstall --no-deps whole-of-it half-of-it"
    )


def test_doctor_can_tell_without_importing_it_here(half_installed):
    (broken,) = broken_packages(["half"])
    assert broken == BrokenPackage("half", "half-of-it", "OSError: libhalf.so.1: cannot open")
    assert "whole_of_it" not in sys.modules


def make_wheel(folder, name, code):
    """A wheel of one package, as an index would have it."""
    package, info = name.replace("-", "_"), f"{name.replace('-', '_')}-1.5.dist-info"
    files = {
        f"{package}/__init__.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{package}-1.5-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An environment with the packages `whole-of-it` and `half-of-it`; a folder is the index."""
    index = tmp_path / "index"
    index.mkdir()
    make_wheel(index, "whole-of-it", "")
    make_wheel(index, "half-of-it", "from half_of_it import part\n")
    with zipfile.ZipFile(index / "half_of_it-1.5-py3-none-any.whl", "a") as wheel:
        wheel.writestr("half_of_it/part.py", "")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (packages,) = tmp_path.glob("venv/lib/python*/site-packages")
    monkeypatch.setenv("PIP_PYTHON", str(tmp_path / "venv/bin/python"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.syspath_prepend(packages)
    monkeypatch.setitem(EXTRAS, "half", {"whole_of_it": "whole-of-it", "half_of_it": "half-of-it"})
    return packages


def type_command(command):
    """Run what a message says to type; return what pip printed."""
    program, *words = shlex.split(command)
    assert program == "pip"
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.partition(".")[0].endswith("_of_it")]:
        del sys.modules[name]
    return done.stdout


def test_the_command_that_is_said_mends_a_half_installed_package(environment):
    type_command("pip install whole-of-it half-of-it")
    require_imports("half", "to test")
    (environment / "half_of_it/part.py").unlink()
    type_command("pip check")  # forgets what was imported
    with pytest.raises(ConfigError, match="half-of-it is installed, but") as refused:
        require_imports("half", "to test")
    command = refused.value.next_step
    assert command.endswith(" --no-deps whole-of-it==1.5 half-of-it==1.5")
    # the control: without its options pip has nothing to do, and nothing is mended
    lazy = command.replace("--force-reinstall ", "")
    assert "Requirement already satisfied: half-of-it==1.5" in type_command(lazy)
    with pytest.raises(ConfigError, match="half-of-it is installed, but"):
        require_imports("half", "to test")
    type_command(command)
    require_imports("half", "to test")


def test_nothing_is_broken_where_everything_is_imported_or_missing(monkeypatch):
    monkeypatch.setitem(EXTRAS, "none", {"no_such_package": "no-such-package", "sys": "sys"})
    assert broken_packages(["none"]) == []


def test_a_package_whose_parent_is_missing_is_missing():
    assert not extras._is_installed("no_such_package.part")
    assert extras._is_installed("opentelemetry.sdk")


@pytest.mark.parametrize(
    ("verb", "module", "extra"),
    [
        (("serve",), "uvicorn", "serve"),
        (("verify", "--second-client"), "py2neo", "py2neo"),
        (("train",), "torch", "train"),
        (("mcp",), "mcp", "mcp"),
    ],
)
def test_a_verb_asks_for_its_extra_before_it_opens_anything(
    monkeypatch, tmp_path, verb, module, extra
):
    """The configuration is missing as well: it would be named first otherwise."""
    config = str(tmp_path / "none.toml")
    without(monkeypatch, module)
    done = CliRunner().invoke(app, [*verb, "--config", config])
    assert isinstance(done.exception, ConfigError)
    assert done.exception.next_step == f"pip install 'ringfence[{extra}]'"
    monkeypatch.undo()
    done = CliRunner().invoke(app, [*verb, "--config", config])  # the control
    assert "none.toml" in str(done.exception)


def test_a_driver_of_the_audit_store_without_its_library_is_said_as_such(monkeypatch, tmp_path):
    """psycopg without libpq: it is there, and importing it fails."""
    (tmp_path / "psycopg.py").write_text("raise ImportError('no pq wrapper available.\\nmore')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError) as refused:
        open_store("postgresql+psycopg://app@127.0.0.1:1/ringfence")
    assert "is installed, but can't be imported (no pq wrapper available.)" in refused.value.found
    assert refused.value.next_step == (
        f"pip install --force-reinstall --no-deps psycopg=={version('psycopg')} "
        f"psycopg-binary=={version('psycopg-binary')}"
    )
