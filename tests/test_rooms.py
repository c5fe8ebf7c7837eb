"""What the folders promise and an import contract cannot say.

Which room may import what stands in pyproject.toml (`lint-imports`). Queries are text, so they
are looked for in the string constants of each module; the rest is about names and sizes.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("connector", "jobs", "migrations", "models")

CYPHER = re.compile(
    r"\b(MATCH|MERGE|CREATE)\s*\(|\bUNWIND\s|\bDETACH DELETE\b|\bSHOW (CONSTRAINTS|INDEXES)\b"
    r"|\bCALL (db|dbms|apoc)\.|\bIN TRANSACTIONS\b"
)
SQL = re.compile(
    r"\bSELECT\s[\s\S]*\sFROM\s|\bINSERT\s+INTO\s|\bDELETE\s+FROM\s|\bUPDATE\s+\w+\s+SET\s"
    r"|\b(CREATE|ALTER|DROP)\s+TABLE\s|^PRAGMA\s"
)
CYPHER_ROOMS = ("connector/neo4j", "migrations/cypher")
SQL_ROOMS = ("connector/store", "migrations/sql")
MAX_LINES = 400
MAX_MODULES_IN_FOLDER = 20

ALLOWED = {
    "Cypher": {},
    "SQL": {},
    "sqlalchemy": {},
    "name": {
        "connector/mapping.py": "the noun for how a graph maps onto nodes and edges",
        "connector/neo4j/read/accounting.py": "the noun for adding up counts",
        "connector/neo4j/quoting.py": "the noun for quoting names in a query",
        "jobs/setup/finding.py": "the noun for what a check found",
        "models/hashing.py": "the noun for hash functions",
        "models/seeding.py": "the noun for seeds of random numbers",
        "models/training/sampling.py": "the noun for drawing neighbours",
    },
    "length": {"jobs/report/verify_pack.py": "one file, which a stranger runs without the others"},
    "folder": {"migrations/sql/versions": "revisions only go forward, one file each"},
}


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Every product module with its path as it stands in the rules."""
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            yield path.relative_to(root).as_posix(), path


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every string constant that is not a docstring."""
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield node.lineno, "".join(pieces)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation
        ):
            yield node.lineno, node.value


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and package of every import, also of those for the type checker alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name.split(".")[0]) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.split(".")[0]


def query_texts(root: Path, pattern: re.Pattern[str], rooms: tuple[str, ...]) -> Iterator[str]:
    for name, path in modules(root):
        if not name.startswith(tuple(f"{room}/" for room in rooms)):
            found = sorted({line for line, text in texts(parse(path)) if pattern.search(text)})
            yield from (f"{name}:{line}" for line in found)


def sqlalchemy_imports(root: Path) -> Iterator[str]:
    for name, path in modules(root):
        if not name.startswith(tuple(f"{room}/" for room in SQL_ROOMS)):
            lines = [line for line, package in imported(parse(path)) if package == "sqlalchemy"]
            yield from (f"{name}:{line}" for line in lines)


def names_in_ing(root: Path) -> Iterator[str]:
    yield from (name for name, path in modules(root) if path.stem.endswith("ing"))


def long_modules(root: Path) -> Iterator[str]:
    for name, path in modules(root):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > MAX_LINES:
            yield f"{name}:{lines}"


def crowded_folders(root: Path) -> Iterator[str]:
    folders = {path.parent for _, path in modules(root)}
    for folder in sorted(folders):
        count = sum(path.stem != "__init__" for path in folder.glob("*.py"))
        if count > MAX_MODULES_IN_FOLDER:
            yield f"{folder.relative_to(root).as_posix()}:{count}"


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


RULES = {
    "Cypher": lambda root: query_texts(root, CYPHER, CYPHER_ROOMS),
    "SQL": lambda root: query_texts(root, SQL, SQL_ROOMS),
    "sqlalchemy": sqlalchemy_imports,
    "name": names_in_ing,
    "length": long_modules,
    "folder": crowded_folders,
}


@pytest.mark.parametrize("rule", RULES)
def test_the_rooms_keep_the_rule(rule):
    broken = [found for found in RULES[rule](ROOT) if found.split(":")[0] not in ALLOWED[rule]]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("rule", RULES)
def test_no_exception_outlives_its_reason(rule):
    """An entry of the allow-list that nothing needs any more is taken out."""
    found = {place.split(":")[0] for place in RULES[rule](ROOT)}
    assert set(ALLOWED[rule]) <= found


BREAKS = {
    "Cypher": [
        ("jobs/a.py", 'Q = "MATCH (n) RETURN n"', 1),
        ("models/a.py", '\nf = lambda label: f"UNWIND $rows AS row MERGE (n:{label})"', 2),
        ("connector/store/a.py", 'Q = """\n  MERGE (n {id: 1})"""', 1),
    ],
    "SQL": [
        ("jobs/a.py", 'Q = "SELECT key FROM prediction"', 1),
        ("connector/neo4j/a.py", 'Q = f"INSERT INTO {table} VALUES (1)"', 1),
        ("jobs/b.py", 'Q = "PRAGMA journal_mode"', 1),
    ],
    "sqlalchemy": [
        ("jobs/a.py", "from sqlalchemy import select", 1),
        ("jobs/b.py", "def f():\n    import sqlalchemy.exc", 2),
        ("connector/neo4j/a.py", "if TYPE_CHECKING:\n    from sqlalchemy.engine import URL", 2),
    ],
}
KEEPS = {
    "Cypher": [
        ("connector/neo4j/a.py", 'Q = "MATCH (n) RETURN n"'),
        ("jobs/a.py", '"""For example MATCH (n) RETURN n."""'),
        ("jobs/b.py", 'SAID = "do the classes match (all of them)?"'),
    ],
    "SQL": [
        ("connector/store/a.py", 'Q = "SELECT key FROM prediction"'),
        ("jobs/a.py", 'SAID = "Select a run from the list"'),
    ],
    "sqlalchemy": [
        ("connector/store/a.py", "from sqlalchemy import select"),
        ("migrations/sql/versions/a.py", "import sqlalchemy as sa"),
        ("jobs/a.py", "from .store import sqlalchemy"),
    ],
}


def write(root: Path, name: str, content: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


@pytest.mark.parametrize(
    ("rule", "name", "content", "line"),
    [(rule, *case) for rule, cases in BREAKS.items() for case in cases],
)
def test_a_query_or_an_import_in_the_wrong_room_is_found(tmp_path, rule, name, content, line):
    """The negative control."""
    write(tmp_path, name, content)
    assert list(RULES[rule](tmp_path)) == [f"{name}:{line}"]


@pytest.mark.parametrize(
    ("rule", "name", "content"),
    [(rule, *case) for rule, cases in KEEPS.items() for case in cases],
)
def test_what_is_allowed_is_not_found(tmp_path, rule, name, content):
    write(tmp_path, name, content)
    assert list(RULES[rule](tmp_path)) == []


def test_names_lengths_and_crowds_over_the_limit_are_found(tmp_path):
    """The negative control, one above each limit and one at it."""
    write(tmp_path, "jobs/looking.py", "")
    write(tmp_path, "jobs/ring/look.py", "")
    write(tmp_path, "models/long.py", "\n" * (MAX_LINES + 1))
    write(tmp_path, "models/enough.py", "\n" * MAX_LINES)
    for number in range(MAX_MODULES_IN_FOLDER + 1):
        write(tmp_path, f"connector/crowd/m{number}.py", "")
    for name in ("__init__", *(f"m{number}" for number in range(MAX_MODULES_IN_FOLDER))):
        write(tmp_path, f"connector/full/{name}.py", "")
    assert list(names_in_ing(tmp_path)) == ["jobs/looking.py"]
    assert list(long_modules(tmp_path)) == [f"models/long.py:{MAX_LINES + 1}"]
    assert list(crowded_folders(tmp_path)) == [f"connector/crowd:{MAX_MODULES_IN_FOLDER + 1}"]


def test_sql_revisions_are_one_line_and_files_are_named_by_their_number():
    """Two branches that add a revision each take the same number: the second one must move on."""
    files = sorted((ROOT / "migrations/sql/versions").glob("0*.py"))
    numbers = [f"{number:04d}" for number in range(1, len(files) + 1)]
    assert [file.name[:4] for file in files] == numbers
    before = [None, *numbers[:-1]]
    for file, number, last in zip(files, numbers, before, strict=True):
        text = file.read_text(encoding="utf-8")
        named = dict(re.findall(r'^(revision|down_revision)\b[^=\n]*= "?(\w+)"?$', text, re.M))
        assert named == {"revision": number, "down_revision": str(last)}, file.name
