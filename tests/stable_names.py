"""Names that others rely on (UPGRADING.md, "kept stable"), collected from the installed code.

    python tests/stable_names.py > tests/stable_names.json

`stable_names.json` is what this printed with the code of commit b008978. Names may be
added; a name that is gone is a change that UPGRADING.md has to announce. Keys of `--json` are read
from the source: they are the fields of the reports' dataclasses, or what `as_json` writes.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import ringfence

ROOT = Path(ringfence.__file__).parent
ROOMS = ("connector", "jobs", "models")
Class = tuple[str, ast.ClassDef]  # with the module that it stands in
REFERENCE = Path(__file__).with_suffix(".json")
REPORTS_OF_VERBS = {
    "demo": ("samples.demo.DemoReport", "samples.story.StoryReport"),
    "mark": ("worklist.marks.Mark",),
    "explain": ("explanation.reasons.Reasons",),
}
"""Reports that a verb prints with `--json` and that no `print_…` function of its module takes."""

COMMANDS = "ringfence.jobs.cli.commands."
GRAPH_ELEMENT = re.compile(
    r"[(\[](\w*):(Ringfence\w+|CoverageAudit|EVALUATED|MAY_BE|AUDITS)\s*(\{[^}]*\})?"
)
PROPERTY = re.compile(r"(\w+):")
PROPERTY_FUNCTIONS = {
    "RingfenceRun": "run_properties",
    "CoverageAudit": "coverage_properties",
}


def collect() -> dict[str, list[str]]:
    """Return every stable name by kind."""
    kinds: dict[str, Iterator[str]] = {
        "verbs and options": verbs_and_options(),
        "exit codes": exit_codes(),
        "keys of --json": json_keys(),
        "settings": settings(),
        "graph": graph_names(),
        "SQL views": sql_views(),
        "metrics": metrics(),
        "Python": python_names(),
    }
    return {kind: sorted(set(names)) for kind, names in kinds.items()}


def verbs_and_options() -> Iterator[str]:
    """`train --promote` for every option, `explain KEY` for every argument."""
    import typer.main

    from ringfence.jobs.cli.app import app

    def walk(command: Any, words: str) -> Iterator[str]:
        for parameter in command.params:
            names = [*parameter.opts, *parameter.secondary_opts]
            option = parameter.param_type_name == "option"
            yield from (f"{words} {name if option else name.upper()}" for name in names)
        for name, inner in getattr(command, "commands", {}).items():
            yield f"{words} {name}"
            yield from walk(inner, f"{words} {name}")

    yield from walk(typer.main.get_command(app), "ringfence")


def exit_codes() -> Iterator[str]:
    """Numbers with their names in the code."""
    from ringfence.jobs.cli.exit_codes import ExitCode

    return (f"{code.value} {code.name}" for code in ExitCode)


def settings() -> Iterator[str]:
    """Settings with the name of their table; those of the environment as variables."""
    from ringfence.jobs.config.load import known_keys, variable
    from ringfence.jobs.config.nested import NESTED_TABLES, setting_names

    for section, key in known_keys():
        yield f"[{section}] {key}"
        yield variable(section, key)
    for place, (kind, _title) in NESTED_TABLES.items():
        yield from (f"[[{place}]] {name}" for name in setting_names(kind))


def metrics() -> Iterator[str]:
    """Metrics with their labels."""
    from ringfence.jobs.dashboard.metrics import METRICS

    for name, metric in METRICS.items():
        yield f"ringfence_{name}"
        yield from (f"ringfence_{name} {label}" for label in metric.labels)


def python_names() -> Iterator[str]:
    """Public functions and methods with their parameters."""
    import ringfence.models
    from ringfence.jobs.python_api.project import Project

    offered: dict[str, Any] = {"ringfence.open": ringfence.open}
    for folder, names in ringfence.models.PUBLIC.items():
        for name in names:
            offered[f"ringfence.models.{folder}.{name}"] = getattr(ringfence.models, name)
    methods = inspect.getmembers(Project, inspect.isfunction)
    offered |= {f"Project.{name}": it for name, it in methods if not name.startswith("_")}
    for name, function in offered.items():
        yield name
        parameters = [word for word in inspect.signature(function).parameters if word != "self"]
        yield from (f"{name}({parameter})" for parameter in parameters)


def sql_views() -> Iterator[str]:
    """Views with their columns, from an empty store that was migrated."""
    from sqlalchemy import create_engine, inspect

    from ringfence.connector.store.engine import open_store
    from ringfence.connector.store.migrate import migrate_sql

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/audit.db"
        store = open_store(url)
        migrate_sql(store)
        store.close()
        engine = create_engine(url)
        inspector = inspect(engine)
        for view in inspector.get_view_names():
            yield view
            yield from (f"{view}.{column['name']}" for column in inspector.get_columns(view))
        engine.dispose()


def graph_names() -> Iterator[str]:
    """Labels and relationship types of our own with the properties that are written on them."""
    for query in _queries():
        for variable, element, properties in GRAPH_ELEMENT.findall(query.replace("{{", "{")):
            yield element
            yield from (f"{element}.{name}" for name in PROPERTY.findall(properties))
            if variable:
                accessed = re.findall(rf"\b{variable}\.(\w+)", query)
                yield from (f"{element}.{name}" for name in accessed)
    for element, function in PROPERTY_FUNCTIONS.items():
        yield from (f"{element}.{name}" for name in _dictionary_keys(_functions()[function]))
    coverage = _find_class("connector.records.StoredCoverage")
    yield from (f"CoverageAudit.{name}" for name in _json_names(coverage))


def _queries() -> Iterator[str]:
    for path in sorted((ROOT / "connector/neo4j/write").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    for path in sorted((ROOT / "migrations/cypher").glob("*.cypher")):
        yield from path.read_text(encoding="utf-8").split(";")


def json_keys() -> Iterator[str]:
    """`verb key.inner_key` for the reports of every verb, and the columns of a worklist."""
    from ringfence.jobs.worklist.table import COLUMNS

    for verb, report in _reports():
        yield from (f"{verb} {path}" for path in _json_paths(report, ()))
    yield from (f"worklist {column}" for column in COLUMNS)


def _reports() -> Iterator[tuple[str, Class]]:
    """Every verb with the classes that its `print_…` functions take."""
    for verb, ends in REPORTS_OF_VERBS.items():
        yield from ((verb, _find_class(end)) for end in ends)
    for module, tree in _trees().items():
        if module.startswith(COMMANDS):
            for node in tree.body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("print_"):
                    annotation = node.args.args[0].annotation
                    for report in _classes_in(module, annotation):
                        yield module.split(".")[-1], report


def _json_paths(report: Class, above: tuple[Class, ...]) -> Iterator[str]:
    for key, inner_classes in _json_names(report).items():
        yield key
        for inner in inner_classes:
            if inner not in above:
                yield from (f"{key}.{path}" for path in _json_paths(inner, (*above, report)))


def _json_names(report: Class) -> dict[str, list[Class]]:
    """Return the keys of a class in JSON, each with the classes of ours that its type names."""
    module, node = report
    fields: dict[str, list[Class]] = {}
    for base in node.bases:
        for parent in _classes_in(module, base):
            fields |= _json_names(parent)
    fields |= {
        str(getattr(item.target, "id", "")): _classes_in(module, item.annotation)
        for item in node.body
        if isinstance(item, ast.AnnAssign)
    }
    as_json = next((f for f in node.body if getattr(f, "name", "") == "as_json"), None)
    if as_json is None:
        return fields
    written = {key: fields.get(key, []) for key in _dictionary_keys(as_json)}
    all_fields = any(
        isinstance(call, ast.Call) and getattr(call.func, "id", "") in {"fields", "asdict"}
        for call in ast.walk(as_json)
    )
    return fields | written if all_fields else written


def _classes_in(module: str, annotation: ast.expr | None) -> list[Class]:
    names = (node.id for node in ast.walk(annotation or ast.Pass()) if isinstance(node, ast.Name))
    return [there for name in names if (there := _class_of(module, name))]


def _class_of(module: str, name: str) -> Class | None:
    """Return the class that `name` means in a module: its own, or one that it imports."""
    for node in ast.walk(_trees()[module]):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and node.module in _trees():
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _class_of(node.module, alias.name)
    return None


def _find_class(end: str) -> Class:
    """Return a class by the end of its full name."""
    folder_and_module, _, name = end.rpartition(".")
    for module in _trees():
        if module.endswith(f".{folder_and_module}") and (there := _class_of(module, name)):
            return there
    raise LookupError(f"no class {end}: stable_names.py must say where it is now")


def _dictionary_keys(node: ast.AST) -> list[str]:
    return [
        key.value
        for inner in ast.walk(node)
        if isinstance(inner, ast.Dict)
        for key in inner.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    ]


@cache
def _functions() -> dict[str, ast.FunctionDef]:
    nodes = (node for tree in _trees().values() for node in tree.body)
    return {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}


@cache
def _trees() -> dict[str, ast.Module]:
    """Every module of the product by its full name."""
    paths = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    return {_module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("ringfence", *parts)).removesuffix(".__init__")


def gone(reference: dict[str, list[str]], now: dict[str, list[str]]) -> list[str]:
    """Return the names of the reference that are no longer there, with their kind."""
    return [
        f"{kind}: {name}"
        for kind, names in reference.items()
        for name in sorted(set(names) - set(now.get(kind, [])))
    ]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(collect(), indent=1) + "\n")
