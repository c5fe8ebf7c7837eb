"""docs/architecture.md and its pictures show the tree as it is."""

import re
import runpy
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
TREE = PAGE.split("## The tree")[1].split("## One scoring run")[0]
ORDER = TREE.split("### The order of `jobs/`")[1].split("```\n")[1].splitlines()
FIRST_CELL = re.compile(r"^\| \**`([\w/]+)/`\** \|", re.MULTILINE)


def make():
    """The script that writes the pictures."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "docs/architecture/make.py")))


def packages():
    """Every folder of the four rooms that Python can import, as a path from the root."""
    rooms = ("connector", "jobs", "migrations", "models")
    found = (file.parent for room in rooms for file in (ROOT / room).rglob("__init__.py"))
    return {str(folder.relative_to(ROOT)) for folder in found}


@pytest.mark.parametrize("name", ["rooms.svg", "scoring-run.svg"])
def test_a_committed_picture_is_what_the_script_writes(name):
    committed = (ROOT / "docs/architecture" / name).read_text(encoding="utf-8")
    assert committed == make().PICTURES[name](), "run: python docs/architecture/make.py"


def test_the_table_has_every_folder_and_no_other():
    named = FIRST_CELL.findall(TREE)
    assert len(named) == len(set(named))
    assert set(named) == packages()


def layers():
    """The layers of jobs/ as the import contract has them, from the top down."""
    (contract,) = [c for c in contracts() if c["type"] == "layers"]
    return contract["layers"]


def contracts():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["importlinter"]["contracts"]


def test_the_order_of_jobs_on_the_page_is_the_one_of_the_contract():
    assert layers() == ORDER


def test_the_picture_has_the_folders_of_jobs_in_the_order_of_the_contract():
    assert make().ROOMS["jobs"] == [name for line in layers() for name in line.split(" | ")]


def test_the_picture_of_the_rooms_has_every_folder_of_each_room():
    first_level = {folder for folder in packages() if folder.count("/") == 1}
    drawn = {f"{room}/{name}" for room, names in make().ROOMS.items() for name in names}
    assert drawn == first_level


def test_a_folder_drawn_without_torch_stands_in_a_contract_that_forbids_it():
    checked = [
        module
        for contract in contracts()
        if "torch" in contract.get("forbidden_modules", [])
        for module in contract["source_modules"]
    ]
    for folder in make().WITHOUT_TORCH:
        name = f"ringfence.jobs.{folder}"
        assert any(f"{module}.".startswith(f"{name}.") for module in checked), folder


def test_the_steps_of_the_second_picture_go_between_its_own_lifelines():
    module = make()
    lives = {name for name, _ in module.LIVES}
    assert {end for source, target, _ in module.STEPS for end in (source, target)} <= lives
    for _, place in module.LIVES:
        assert (ROOT / place).is_dir()
