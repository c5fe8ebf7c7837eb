"""The lists in pyproject.toml name every package and every data file of the tree, and no others.

A package that the list forgets works in an editable install and is missing from the wheel.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("connector", "jobs", "migrations", "models")
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]


def files(root: Path) -> Iterator[Path]:
    """The files of the package below `root`, relative to it; nothing that Python wrote."""
    for room in ROOMS:
        for path in (root / room).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root)


def package_of(folder: Path) -> str:
    """
    >>> package_of(Path("jobs/cli"))
    'ringfence.jobs.cli'
    """
    return ".".join(("ringfence", *folder.parts))


def packages_in(root: Path) -> list[str]:
    folders = {path.parent for path in files(root) if path.suffix == ".py"}
    return sorted({"ringfence", *map(package_of, folders)})


def data_files_in(root: Path) -> set[str]:
    return {"py.typed"} | {path.as_posix() for path in files(root) if path.suffix != ".py"}


def data_files_named(root: Path, patterns: dict[str, list[str]]) -> dict[str, set[str]]:
    """The files that each pattern of package-data takes."""
    return {
        f"{package}: {pattern}": {
            path.relative_to(root).as_posix()
            for path in root.joinpath(*package.split(".")[1:]).glob(pattern)
        }
        for package, row in patterns.items()
        for pattern in row
    }


def test_the_list_of_packages_is_the_tree():
    assert sorted(SETUPTOOLS["packages"]) == packages_in(ROOT)


def test_every_folder_of_modules_is_a_package():
    """A folder without `__init__.py` would be a namespace that others may extend."""
    folders = {path.parent for path in files(ROOT) if path.suffix == ".py"}
    assert [
        folder for folder in sorted(folders) if not (ROOT / folder / "__init__.py").exists()
    ] == []


def test_every_data_file_is_in_package_data_and_every_pattern_takes_one():
    taken = data_files_named(ROOT, SETUPTOOLS["package-data"])
    assert set().union(*taken.values()) == data_files_in(ROOT)
    assert [pattern for pattern, found in taken.items() if not found] == []


@pytest.mark.parametrize("name", ["jobs/new/thing.py", "models/new/deep/thing.py"])
def test_a_new_folder_that_the_list_forgets_is_noticed(tmp_path, name):
    """The negative control."""
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).touch()
    assert package_of(Path(name).parent) in packages_in(tmp_path)
    assert package_of(Path(name).parent) not in SETUPTOOLS["packages"]


def test_a_new_template_that_no_pattern_takes_is_noticed(tmp_path):
    """The negative control."""
    for name in ("templates/page.html", "pictures/logo.svg"):
        (tmp_path / "jobs/dashboard" / name).parent.mkdir(parents=True)
        (tmp_path / "jobs/dashboard" / name).touch()
    taken = data_files_named(tmp_path, SETUPTOOLS["package-data"])
    left = data_files_in(tmp_path) - set().union(*taken.values())
    assert left == {"py.typed", "jobs/dashboard/pictures/logo.svg"}
