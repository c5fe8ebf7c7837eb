"""What models offers and no job reaches says "Library only" in its first line."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def trees(room):
    paths = sorted((ROOT / room).rglob("*.py"))
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def names_in(node):
    """Every name that a piece of code mentions; classes that registries name as text too."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.ImportFrom):
            found |= {alias.name for alias in part.names}
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and ":" in part.value:
            found.add(part.value.rpartition(":")[2])
    return found


def definitions(models):
    """Name -> (path, node) of the functions and classes at the top of a module."""
    found = {}
    for path, tree in models.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(node.name, []).append((path, node))
    return found


def reached(models, roots):
    """Names that the roots lead to, definition by definition."""
    defined, seen, todo = definitions(models), set(), set(roots)
    for tree in models.values():  # tables at the top of a module, such as registries
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" not in names_in(node):
                todo |= names_in(node)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo |= {other for _, node in defined.get(name, []) for other in names_in(node)} - seen
    return seen


def first_line(node):
    return (ast.get_docstring(node) or "").partition("\n")[0]


def unmarked(models, seen):
    return [
        f"{path}: {name}"
        for name, places in definitions(models).items()
        for path, node in places
        if name not in seen and not name.startswith("_") and "kernels" not in path.parts
        if not any("Library only" in first_line(part) for part in (node, models[path]))
    ]


@pytest.fixture(scope="module")
def models():
    return trees("models")


def test_what_no_job_reaches_says_so(models):
    mentioned = {name for tree in trees("jobs").values() for name in names_in(tree)}
    assert unmarked(models, reached(models, mentioned)) == []


def test_without_jobs_everything_else_would_have_to_say_so(models):
    """The negative control."""
    assert len(unmarked(models, reached(models, set()))) > 50
