"""Lock files: hashes for everything, one version of a package in all of them, nobody's host."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FULL, SCORER = "requirements.lock", "requirements-scorer.lock"
LOCKS = (FULL, SCORER, "requirements-dev.lock")
NOT_FOR_SCORING = {"torch", "torch-geometric", "scikit-learn", "pyarrow", "mlflow", "ray"}


def pins(text):
    """Package, version and marker of every line that is not a hash."""
    return set(re.findall(r"^([\w.-]+==[^ \\\n]+)(?: ; [^\\\n]+)?", text, re.M))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def packages(name):
    return {pin.partition("==")[0] for pin in pins(read(name))}


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_has_hashes_and_no_address_is_named(name):
    text = read(name)
    blocks = re.split(r"^(?=\w)", text, flags=re.M)[1:]
    assert len(blocks) == len(re.findall(r"^[\w.-]+==", text, re.M)) > 40
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    assert "--index" not in text


@pytest.mark.parametrize("name", [FULL, SCORER])
def test_what_is_installed_is_what_was_tested(name):
    assert pins(read(name)) <= pins(read("requirements-dev.lock"))


def test_a_scorer_needs_nothing_that_trains():
    assert packages(SCORER).isdisjoint(NOT_FOR_SCORING)
    assert {"neo4j", "numba", "fastapi", "psycopg"} <= packages(SCORER) < packages(FULL)
    assert {"torch", "torch-geometric", "scikit-learn", "pyarrow"} <= packages(FULL)
