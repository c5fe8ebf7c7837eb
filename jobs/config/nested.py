"""The tables inside a table of `ringfence.toml`, and the names under which a file has settings."""

from __future__ import annotations

from pydantic.fields import FieldInfo

from ringfence.jobs.config.labels import RelationshipColumn
from ringfence.jobs.config.section import Section
from ringfence.jobs.config.settings import (
    ColumnSettings,
    ListSettings,
    NodeSettings,
    RelationshipSettings,
)

NESTED_TABLES: dict[str, tuple[type[Section], str]] = {
    "graph.nodes": (NodeSettings, "[[graph.nodes]]"),
    "graph.relationships": (RelationshipSettings, "[[graph.relationships]]"),
    "graph.relationships.columns": (
        RelationshipColumn,
        "[[graph.relationships]] columns = [{ … }]",
    ),
    "lists": (ListSettings, "[[lists]]"),
    "graph.columns": (ColumnSettings, "[graph.columns.LABEL] PROPERTY = { … }"),
}
"""By the place in the file: the class of the table, and its heading in the reference."""


def setting_names(kind: type[Section]) -> list[str]:
    """Return the names of a table's settings as a file has them."""
    return [setting_name(name, field) for name, field in kind.model_fields.items()]


def setting_name(name: str, field: FieldInfo) -> str:
    """Return a setting's name in the file: `from` is no name for a field in Python."""
    return field.alias or name
