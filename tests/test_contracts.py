"""Every import contract of pyproject.toml can fail: each forbidden import is written and found.

A contract with a slip in a module's name, or whose exceptions are too wide, is kept for ever.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from itertools import pairwise, permutations, product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("connector", "jobs", "migrations", "models")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
LINT = (
    "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
)


def forbidden_imports(contract):
    """Pairs (package, what none of its modules may import) that break the contract."""
    if contract["type"] == "layers":
        return upward_imports(contract)
    if contract["type"] == "forbidden":
        sources, targets = contract["source_modules"], contract["forbidden_modules"]
    else:
        allowed = contract["allowed_importers"]
        rooms = [f"ringfence.{room}" for room in ROOMS]
        sources = [room for room in rooms if not any(one.startswith(room) for one in allowed)]
        sources += ["ringfence.jobs.scoring", "ringfence.connector.mirror"]
        targets = contract["protected_modules"]
    return [(source, target) for source in sources for target in targets]


def upward_imports(contract):
    """Pairs (folder, a folder of the line above it or another one of its own line)."""
    (container,) = contract["containers"]
    lines = [[f"{container}.{name}" for name in line.split(" | ")] for line in contract["layers"]]
    upward = [pair for above, below in pairwise(lines) for pair in product(below, above)]
    return upward + [pair for line in lines for pair in permutations(line, 2)]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the linter says of a copy of the product where every forbidden import is made."""
    root = tmp_path_factory.mktemp("contracts")
    home = root / "ringfence"
    for room in ROOMS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, home / room, ignore=ignored)
    for module in ("__init__.py", "__main__.py"):
        shutil.copy(ROOT / module, home)
    shutil.copy(ROOT / "pyproject.toml", root)
    for contract in CONTRACTS:
        for source, target in forbidden_imports(contract):
            (root.joinpath(*source.split(".")) / f"{slip(target)}.py").write_text(
                f"import {target}\n"
            )
    environment = {**os.environ, "PYTHONPATH": str(root), "COLUMNS": "400", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout.split("Broken contracts")[1]


def slip(target):
    """Name of the module that imports what it may not."""
    return "slip_" + target.replace(".", "_")


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract["name"])
def test_a_forbidden_import_breaks_the_contract(told, contract):
    section = told.split(f"\n{contract['name']}\n")[1]
    following = [f"\n{other['name']}\n" for other in CONTRACTS if other is not contract]
    for name in following:
        section = section.split(name)[0]
    for source, target in forbidden_imports(contract):
        assert f"{source}.{slip(target)} -> {target} (l.1)" in section


def test_every_exception_of_a_contract_is_still_needed():
    """The linter itself refuses an exception that matches no import, unless it is told not to."""
    assert [c["name"] for c in CONTRACTS if "unmatched_ignore_imports_alerting" in c] == []
