"""The pages of the reference, written from the code: verbs, metrics, both schemas, Python.

`make docs` writes them when it builds the site; `python docs/site/reference.py FOLDER` writes them
alone. docs/configuration.md is made by `ringfence.jobs.config.reference` and is committed.
"""

from __future__ import annotations

import ast
import inspect
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import ringfence
from ringfence.connector import store as store_room
from ringfence.connector.store.engine import Store, open_store
from ringfence.connector.store.migrate import migrate_sql
from ringfence.connector.store.tables import metadata

sys.path.insert(0, str(Path(__file__).parent))

from graph_schema import NODES, RELATIONSHIPS, Part

MADE = "(This page is made from the code when the site is built.)\n"


def write_pages(folder: Path) -> list[Path]:
    """Write every page into `folder`; one that has not changed keeps its time."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, page in PAGES.items():
        file, text = folder / f"{name}.md", page()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        written.append(file)
    return written


def command_line() -> str:
    """Every verb with its arguments and options, from Typer."""
    import typer

    from ringfence.jobs.cli.app import app
    from ringfence.jobs.cli.exit_codes import MEANINGS

    def verbs(command: Any, name: str) -> Iterator[str]:
        context = typer.Context(command, info_name=name)
        children = getattr(command, "commands", None)
        if " " in name:
            yield from _verb(command, name, context)
        for child in command.list_commands(context) if children else ():
            yield from verbs(children[child], f"{name} {child}")

    codes = [(f"{code:d}", meaning) for code, meaning in MEANINGS.items()]
    head = ["# Command line\n", MADE, "`python -m ringfence` is the same program.\n"]
    head += ["## Exit codes\n", _table(("exit code", "meaning"), codes)]
    return "\n".join([*head, *verbs(typer.main.get_command(app), "ringfence")]) + "\n"


def _verb(command: Any, name: str, context: Any) -> Iterator[str]:
    rows = []
    for parameter in command.get_params(context):
        if parameter.name == "help":
            continue
        spelled = " ".join(f"`{one}`" for one in (*parameter.opts, *parameter.secondary_opts))
        if parameter.param_type_name == "argument":
            spelled = f"`{parameter.metavar or str(parameter.name).upper()}`"
        default = parameter.default
        shown = "" if default is None or default is False or callable(default) else f"`{default}`"
        rows.append((spelled, _cell(getattr(parameter, "help", "") or ""), shown))
    usage = re.sub(r"\{(\w+)\}", lambda found: found[1].upper(),
                   " ".join(command.collect_usage_pieces(context)))  # fmt: skip
    yield f"\n## {name}\n\n```\n{name} {usage}\n```\n"
    yield inspect.cleandoc(command.help or command.short_help or "") + "\n"
    if rows:
        yield _table(("option or argument", "meaning", "default"), rows)


def metrics() -> str:
    """Every metric of `/metrics`, with its labels."""
    from ringfence.jobs.dashboard.metrics import METRICS

    rows = [
        (f"`ringfence_{name}`", ", ".join(f"`{one}`" for one in ("project", *metric.labels)),
         _cell(metric.text))
        for name, metric in METRICS.items()
    ]  # fmt: skip
    head = "# Metrics\n\n" + MADE + "\n`ringfence serve` answers at `/metrics` in Prometheus' text "
    head += "form. All are gauges; one without a value yet is left out.\n\n"
    return head + _table(("metric", "labels", "meaning"), rows) + "\n"


def sql_schema() -> str:
    """Tables with their columns and texts, and the views that are kept stable."""
    texts = _table_texts()
    parts = ["# SQL schema\n", MADE]
    parts.append("Times are integer nanoseconds since 1970, JSON is text. The views are kept "
                 "stable across versions; tables change with a migration.\n")  # fmt: skip
    parts.append("## Views\n")
    for name, columns in _views():
        listed = ", ".join(f"`{column}`" for column in columns)
        parts.append(f"### {name}\n\n{listed}\n")
    parts.append("## Tables\n")
    for name, table in sorted(metadata.tables.items()):
        parts.append(f"### {name}\n\n{texts.get(name, '')}\n")
        rows = [
            (f"`{column.name}`", str(column.type).lower(),
             "key" if column.primary_key else "" if column.nullable else "needed")
            for column in table.columns
        ]  # fmt: skip
        parts.append(_table(("column", "type", ""), rows) + "\n")
    return "\n".join(parts)


def _table_texts() -> dict[str, str]:
    """The text that stands under each table's definition, by the table's name."""
    texts = {}
    for path in sorted(Path(str(store_room.__file__)).parent.rglob("tables.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for statement, following in pairwise(body):
            call = getattr(statement, "value", None)
            if not (isinstance(statement, ast.Assign) and isinstance(call, ast.Call)):
                continue
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                name = call.args[0].value if isinstance(call.args[0], ast.Constant) else ""
                texts[str(name)] = inspect.cleandoc(str(following.value.value))
    return texts


def _views() -> Iterator[tuple[str, list[str]]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "audit.db"
        store: Store = open_store(f"sqlite:///{file}")
        migrate_sql(store)
        store.close()
        connection = sqlite3.connect(file)
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY 1")
        for (name,) in names.fetchall():
            columns = connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
            yield name, [column for (column,) in columns]
        connection.close()


def graph_schema() -> str:
    """What ringfence writes into the graph: labels, relationships, constraints."""
    parts = ["# Graph schema\n", MADE]
    parts.append("What stands in your graph beside your own nodes and relationships. A plain "
                 "`DELETE` of a node that has a set fails; `DETACH DELETE` works.\n")  # fmt: skip
    parts.append("## Nodes\n")
    parts += [_graph_part(part) for part in NODES]
    parts.append("## Relationships\n")
    parts += [_graph_part(part) for part in RELATIONSHIPS]
    parts.append("## Constraints\n")
    folder = Path(ringfence.__file__).parent / "migrations/cypher"
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cypher")))
    made = re.findall(r"// ([^\n]+)\nCREATE CONSTRAINT (\w+)[^;]*?FOR (\([^\n]+);", text)
    rows = [(f"`{name}`", f"`{rule}`", why) for why, name, rule in made]
    parts.append(_table(("constraint", "rule", "why"), rows))
    return "\n".join(parts) + "\n"


def _graph_part(part: Part) -> str:
    rows = [(f"`{name}`", meaning) for name, meaning in part.properties.items()]
    head = f"### {part.pattern}\n\n{part.text}\n\n"
    return head + (_table(("property", "meaning"), rows) + "\n" if rows else "")


def python() -> str:
    """`ringfence.open`, the methods of a project, and the names of `ringfence.models`."""
    from ringfence import models
    from ringfence.jobs.python_api.project import Project

    parts = ["# Python\n", MADE, "## ringfence\n", _callable("ringfence.open", ringfence.open)]
    parts.append("## The project that `ringfence.open` returns\n")
    parts += [
        _callable(name, method)
        for name, method in vars(Project).items()
        if not name.startswith("_") and inspect.isfunction(method)
    ]
    parts.append("## ringfence.models\n")
    parts.append("Computing on arrays, usable without a database.\n")
    for folder, names in models.PUBLIC.items():
        parts += [_definition(f"ringfence.models.{name}", folder, name) for name in names]
    return "\n".join(parts)


def _callable(name: str, function: Callable[..., Any]) -> str:
    signature = re.sub(r"\(self(, )?", "(", str(inspect.signature(function)).replace("'", ""))
    return _entry(name, signature, inspect.getdoc(function) or "")


def _definition(shown: str, folder: str, name: str) -> str:
    """A function or class from its source: importing the networks would take torch along."""
    home = Path(ringfence.__file__).parent / "models" / folder
    for path in sorted(home.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name != name:
                continue
            inner = node.body if isinstance(node, ast.ClassDef) else [node]
            makers = [one for one in inner if isinstance(one, ast.FunctionDef)]
            arguments = [ast.unparse(one.args) for one in makers if one.name in (name, "__init__")]
            given = re.sub(r"^self(, )?", "", arguments[0]) if arguments else "…"
            returned = getattr(node, "returns", None)
            gives = f" -> {ast.unparse(returned)}" if returned is not None else ""
            return _entry(shown, f"({given}){gives}", ast.get_docstring(node) or "")
    raise LookupError(shown)


def _entry(name: str, signature: str, text: str) -> str:
    """A heading, the signature and the docstring, its examples and formulas as code."""
    lines, fenced = [], False
    for line in text.splitlines():
        code = line.startswith((">>> ", "... ", "    ")) or (fenced and bool(line.strip()))
        if code != fenced:
            lines.append("```python" if line.startswith(">>> ") else "```")
        fenced = code
        lines.append(line)
    lines += ["```"] if fenced else []
    return f"### {name}\n\n```python\n{name}{signature}\n```\n\n" + "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


PAGES: dict[str, Callable[[], str]] = {
    "command-line": command_line,
    "python": python,
    "metrics": metrics,
    "sql": sql_schema,
    "graph": graph_schema,
}

if __name__ == "__main__":
    for page in write_pages(Path(sys.argv[1])):
        sys.stdout.write(f"{page}\n")
