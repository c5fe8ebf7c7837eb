"""Counts of the source tree: lines, modules, files that ask for `typed`, vague names, import pairs.

    python -m benchmarks.structure                    # this tree
    python -m benchmarks.structure --before b008978   # that commit beside this tree
    python -m benchmarks.structure --files            # also which files, modules and folders

`connector`, `jobs` and `models` are counted. Nothing of them is imported, so any commit will do.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import tarfile
import tempfile
from collections import defaultdict
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("connector", "jobs", "models")
ASKS_WHETHER_TYPED = re.compile(
    r"\.typed\b|is_typed|typed is not None"  # as long as there were twins
    r"|(?<!self)\.features_are_strict\b|\.has_raw_columns\b"  # a graph, by its schema or its mirror
    r"|(?<!def )\btyped_network\(|\bTYPED_KEY\)|\bTYPED_KEY (not )?in\b"  # a model
    r"|\bisinstance\([^()]*\bTyped(Network|Plan|Graph|Pass)\b"  # what became of one
    r"|\btype\([^()]*\) (is|==|is not|!=) Typed\w+"
)
"""Every way of asking that the tree has, or had; where the answer is defined, nobody asks."""

IMPORT = re.compile(r"^\s*(from|import) .*$", re.MULTILINE)
LOOSE_DICTIONARY = re.compile(r"(?:dict|Mapping)\[str, Any\]")
VAGUE_NAMES = ("one", "found", "own")
MAX_LINES_OF_FRAGMENT = 60
LISTS_OF_VARIANTS = re.compile(r"/(__init__|registry|tables|app|settings|doctor|record_check)\.py$")
"""Modules that list variants, one file each: a module that one of them alone imports is one."""


@dataclass(frozen=True, slots=True)
class Module:
    """A source file: its name as others import it, its text, the modules that it imports."""

    path: str
    name: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def folder(self) -> str:
        return self.path.split("/")[1]


@dataclass(frozen=True, slots=True)
class Structure:
    """The counts of a tree; lists hold what was counted."""

    lines: int
    modules: int
    lines_by_room: dict[str, int]
    modules_by_room: dict[str, int]
    files_asking_whether_typed: list[str]
    files_asking_beside_imports: list[str]
    loose_dictionaries: int
    vague_names: dict[str, int]
    fragments: list[str]
    fragments_of_a_story: list[str]
    folders_importing_each_other: list[str]


def measure(root: Path) -> Structure:
    """Count everything in the tree under `root`."""
    modules = read_modules(root)
    importers = find_importers(modules)
    fragments = find_fragments(modules, importers)
    by_room = {room: [m for m in modules if m.path.startswith(f"{room}/")] for room in ROOMS}
    return Structure(
        lines=sum(module.lines for module in modules),
        modules=len(modules),
        lines_by_room={room: sum(m.lines for m in rows) for room, rows in by_room.items()},
        modules_by_room={room: len(rows) for room, rows in by_room.items()},
        files_asking_whether_typed=[
            module.path for module in modules if ASKS_WHETHER_TYPED.search(module.text)
        ],
        files_asking_beside_imports=[
            module.path
            for module in modules
            if ASKS_WHETHER_TYPED.search(IMPORT.sub("", module.text))
        ],
        loose_dictionaries=sum(len(LOOSE_DICTIONARY.findall(m.text)) for m in modules),
        vague_names=count_vague_names(modules),
        fragments=[module.path for module in fragments],
        fragments_of_a_story=find_parts_of_a_story(fragments, modules, importers),
        folders_importing_each_other=find_mutual_folders(modules, importers),
    )


def read_modules(root: Path) -> list[Module]:
    """Return every module of the three rooms."""
    paths = sorted(path for room in ROOMS for path in (root / room).rglob("*.py"))
    return [_read(path, path.relative_to(root).as_posix()) for path in paths]


def _read(path: Path, relative: str) -> Module:
    text = path.read_text(encoding="utf-8")
    dotted = relative.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return Module(relative, f"ringfence.{dotted}", text, ast.parse(text))


def find_importers(modules: list[Module]) -> dict[str, set[str]]:
    """Return by module the paths of those that import it, also for the type checker alone."""
    names = {module.name for module in modules}
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in ast.walk(module.tree):
            for name in _imported_names(node):
                if name in names and name != module.name:
                    importers[name].add(module.path)
    return importers


def _imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def find_fragments(modules: list[Module], importers: dict[str, set[str]]) -> list[Module]:
    """Return the small modules that at most one module imports."""
    return [
        module
        for module in modules
        if module.lines < MAX_LINES_OF_FRAGMENT
        and not module.path.endswith("__init__.py")
        and len(importers[module.name]) <= 1
    ]


def find_parts_of_a_story(
    fragments: list[Module], modules: list[Module], importers: dict[str, set[str]]
) -> list[str]:
    """Return those that are no variant, no compiled kernel, and imported by a module at all."""
    folders = {str(Path(m.path).parent) for m in modules if m.path.endswith("/registry.py")}
    return [
        module.path
        for module in fragments
        if not folders & set(map(str, Path(module.path).parents))
        and "/kernels/" not in module.path
        and any(not LISTS_OF_VARIANTS.search(path) for path in importers[module.name])
    ]


def count_vague_names(modules: list[Module]) -> dict[str, int]:
    """Count the variables and arguments that are bound under the name `one`, `found` or `own`.

    Fields of a class don't count, whose names stand in a stored format; nor do arguments that can
    only be named, as the parts of an error.
    """
    counts = dict.fromkeys(VAGUE_NAMES, 0)
    for module in modules:
        named = {id(node) for part in ast.walk(module.tree) for node in _named_outside(part)}
        for node in ast.walk(module.tree):
            name = None if id(node) in named else _bound_name(node)
            if name in counts:
                counts[name] += 1
    return counts


def _bound_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def _named_outside(node: ast.AST) -> list[ast.AST]:
    """Fields of a class, arguments of a function that can only be named."""
    if isinstance(node, ast.ClassDef):
        return [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return list(node.args.kwonlyargs)
    return []


def find_mutual_folders(modules: list[Module], importers: dict[str, set[str]]) -> list[str]:
    """Return the pairs of folders of `jobs` that import each other, in whichever modules."""
    edges = {
        (path.split("/")[1], module.folder)
        for module in modules
        if module.path.startswith("jobs/")
        for path in importers[module.name]
        if path.startswith("jobs/")
    }
    folders = sorted({folder for edge in edges for folder in edge})
    return [
        f"{a} <-> {b}" for a, b in combinations(folders, 2) if (a, b) in edges and (b, a) in edges
    ]


def measure_commit(revision: str) -> Structure:
    """Count everything in the tree of a commit."""
    archive = subprocess.run(
        ["git", "archive", revision, *ROOMS], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        return measure(Path(folder))


def as_rows(structure: Structure) -> dict[str, int]:
    """Return the counts under the words of the table."""
    rows = {"lines": structure.lines}
    rows |= {f"lines of {room}": structure.lines_by_room[room] for room in ROOMS}
    rows["modules"] = structure.modules
    rows |= {f"modules of {room}": structure.modules_by_room[room] for room in ROOMS}
    rows["files that ask whether a project is typed"] = len(structure.files_asking_whether_typed)
    rows["the same without lines that import"] = len(structure.files_asking_beside_imports)
    rows["dict[str, Any] and Mapping[str, Any]"] = structure.loose_dictionaries
    rows |= {f"variables called {name}": n for name, n in structure.vague_names.items()}
    rows[f"modules under {MAX_LINES_OF_FRAGMENT} lines with at most one importer"] = len(
        structure.fragments
    )
    rows["of these neither variants nor compiled kernels"] = len(structure.fragments_of_a_story)
    rows["pairs of folders in jobs that import each other"] = len(
        structure.folders_importing_each_other
    )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="a commit to show beside this tree")
    parser.add_argument("--files", action="store_true", help="also name what was counted")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    trees = {"now": measure(ROOT)}
    if given.before:
        trees = {given.before: measure_commit(given.before), **trees}
    if given.json:
        print(json.dumps({name: asdict(tree) for name, tree in trees.items()}, indent=2))
        return
    print_table({name: as_rows(tree) for name, tree in trees.items()})
    if given.files:
        print_files(trees["now"])


def print_table(columns: dict[str, dict[str, int]]) -> None:
    """Print a column per tree."""
    print(f"{'':64}" + "".join(f"{name:>12}" for name in columns))
    for word in next(iter(columns.values())):
        print(f"{word:64}" + "".join(f"{rows[word]:12,}" for rows in columns.values()))


def print_files(structure: Structure) -> None:
    """Print the files, modules and folders behind the counts."""
    for title, names in {
        "files that ask whether a project is typed": structure.files_asking_whether_typed,
        "small modules with at most one importer": structure.fragments,
        "of these neither variants nor compiled kernels": structure.fragments_of_a_story,
        "folders of jobs that import each other": structure.folders_importing_each_other,
    }.items():
        print(f"\n{title}:", *names, sep="\n  ")


if __name__ == "__main__":
    main()
