"""Code that stands in text names modules that exist.

A program for a child process is a string, and an example in a page is prose: when a module moves,
no tool follows it there.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "connector", "docs", "jobs", "migrations", "models", "tests")
IMPORT = re.compile(
    r"^[ \t]*(?:>>> )?(?:from ((?:ringfence|tests|benchmarks)[\w.]*) import \(?([\w, ]+)"
    r"|import ((?:ringfence|tests|benchmarks)[\w.]*(?:, *ringfence[\w.]*)*))",
    re.MULTILINE,
)


def imports_in(text: str) -> Iterator[str]:
    """The dotted names that the import lines in a text ask for.

    >>> list(imports_in("from ringfence.models import scores, rank as r\\nimport ringfence.jobs"))
    ['ringfence.models.scores', 'ringfence.models.rank', 'ringfence.jobs']
    """
    for module, names, plain in IMPORT.findall(text):
        yield from (f"{module}.{name.split()[0]}" for name in names.split(",") if name.strip())
        # a name that ends with a dot goes on in a parameter of the string
        yield from (name for name in plain.split(", ") if name and not name.endswith("."))


def to_json_columns(path: Path) -> Iterator[str]:
    """A page as a whole; of a module its strings, docstrings included."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield text
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def exists(name: str) -> bool:
    """Whether a dotted name is a module or something inside one."""
    parent, _, last = name.rpartition(".")
    try:
        if parent and hasattr(importlib.import_module(parent), last):
            return True
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def test_modules_named_in_strings_and_pages_exist():
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    for folder in FOLDERS:
        pages += [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.md")]
    pages.remove(Path(__file__))  # its controls name what is not there
    for path in ("tests/end_to_end/test_first_version.py", "benchmarks/cold.py"):
        pages.remove(ROOT / path)  # they run the first version's modules too
    asked = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in pages
        for text in to_json_columns(path)
        for name in imports_in(text)
    }
    assert len(asked) > 20
    missing = sorted(f"{path}: {name}" for path, name in asked if not exists(name))
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    "text",
    [
        "from ringfence.connector.nowhere import connect",
        "\n    from ringfence.models import nothing",
        "import ringfence.jobs, ringfence.jobs.gone",
        ">>> from tests.gone import MAPPING",
    ],
)
def test_a_module_that_moved_is_noticed(text):
    """The negative control."""
    assert [name for name in imports_in(text) if not exists(name)]


def test_what_exists_is_not_complained_about():
    text = "from ringfence.models.scores import tps, aps\nimport ringfence.jobs.cli.app as app"
    assert [name for name in imports_in(text) if not exists(name)] == []
