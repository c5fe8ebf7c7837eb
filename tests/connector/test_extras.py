"""Extras are those of pyproject.toml, and a missing package is said with what to type."""

import re
import tomllib
from pathlib import Path

import pytest

from ringfence.connector import extras
from ringfence.connector.errors import ConfigError
from ringfence.connector.extras import EXTRAS, missing_packages, require_extra

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


def test_a_package_whose_parent_is_missing_is_missing():
    assert not extras._is_installed("no_such_package.part")
    assert extras._is_installed("opentelemetry.sdk")
