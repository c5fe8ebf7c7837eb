"""docs/configuration.md, made from the settings themselves (`make docs`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ringfence.jobs.config.load import variable
from ringfence.jobs.config.names import RegisteredNames
from ringfence.jobs.config.nested import NESTED_TABLES, setting_name
from ringfence.jobs.config.section import Section
from ringfence.jobs.config.settings import SECRETS, Settings, tables

HEAD = """# Configuration

`ringfence.toml` in the working folder, or the file named by `--config` or `RINGFENCE_CONFIG`.
`ringfence init` writes one from your live graph, `ringfence doctor` checks it.

Every setting can also come from the environment, which wins over the file; lists and tables are
written as JSON there. Without any file the environment alone is a configuration, if it has
`RINGFENCE_GRAPH_*`; relative paths are then those of the working folder. Secrets come from the
environment only, or from files that it names (`RINGFENCE_NEO4J_PASSWORD_FILE` and so on): a
`ringfence.toml` that holds one is refused. Which Neo4j is meant where `[neo4j]` leaves it open:
[your own graph](your-own-graph.md#which-neo4j).
A setting that doesn't exist, in the file or in the environment, is an error that names the nearest
one that does.

(This page is generated from the code by `make docs`; a test compares them.)
"""

TYPE_NAMES = {
    "str": "text",
    "float": "number",
    "int": "whole number",
    "bool": "true or false",
    "Path": "path",
    "datetime": "date and time",
    "NodeSettings": "tables",
    "ListSettings": "tables",
    "RelationshipSettings": "tables",
    "ColumnSettings": "table",
    "RelationshipColumn": "table",
}


def reference() -> str:
    """Return the whole page."""
    parts = [HEAD, "## Top of the file\n", _header()]
    sections = dict(tables())
    parts += [
        _line("", name, field)
        for name, field in Settings.model_fields.items()
        if name not in sections
    ]
    for name, kind in sections.items():
        parts += _section(name, kind)
    for name, (kind, title) in NESTED_TABLES.items():
        parts += _section(name, kind, title)
    return "\n".join(parts) + "\n"


def _section(name: str, kind: type[Section], title: str | None = None) -> list[str]:
    lines = [f"\n## {title or f'[{name}]'}\n", f"{str(kind.__doc__).splitlines()[0]}\n", _header()]
    return lines + [
        _line(name, setting_name(key, field), field) for key, field in kind.model_fields.items()
    ]


def _header() -> str:
    return "| setting | type | default | meaning | variable |\n|---|---|---|---|---|"


def _line(section: str, name: str, field: FieldInfo) -> str:
    secret = name in SECRETS.get(section, ())
    type_ = "secret text" if secret else _type_of(field)
    default = "" if secret else _default(field)
    nested = "" if section in NESTED_TABLES else f"`{variable(section, name)}`"
    meaning = str(field.description or "").replace("|", "\\|")
    return f"| `{name}` | {type_} | {default} | {meaning} | {nested} |"


def _type_of(field: FieldInfo) -> str:
    """The type of a setting; pydantic keeps what `Annotated` adds apart from the annotation."""
    return _names(field.metadata) or _type(field.annotation)


def _names(metadata: Iterable[Any]) -> str:
    allowed = [kind.names() for kind in metadata if isinstance(kind, RegisteredNames)]
    return " or ".join(f"`{name}`" for names in allowed for name in names)


def _type(kind: Any) -> str:
    if hasattr(kind, "__metadata__"):  # Annotated: bounds of a number are no part of its type
        return _names(kind.__metadata__) or _type(kind.__origin__)
    if get_args(kind) and str(get_origin(kind)).endswith("Literal"):
        return " or ".join(f"`{value}`" for value in get_args(kind))
    if get_origin(kind) is dict:
        return f"table of {_type(get_args(kind)[1])}"
    if get_origin(kind) is list:
        return f"list of {_type(get_args(kind)[0])}"
    if get_args(kind):
        return " or ".join(_type(part) for part in get_args(kind) if part is not type(None))
    name = getattr(kind, "__name__", str(kind))
    return TYPE_NAMES.get(name, name)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    if field.default is PydanticUndefined:
        return "none"
    if field.default is None or field.default == "":
        return "none"
    value = str(field.default)
    return f"`{value.lower() if isinstance(field.default, bool) else value}`"


if __name__ == "__main__":
    sys.stdout.write(reference())
