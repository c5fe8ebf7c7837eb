"""Values of a query's rows as a person reads them: nodes and paths in Cypher's own form."""

from __future__ import annotations

from typing import Any

from ringfence.connector.neo4j.bolt import Node, Path, Relationship

MAX_ITEMS_SHOWN = 6  # of a list; features have hundreds
MAX_TEXT_CHARS = 60


def display(value: Any) -> Any:
    """Return a node, relationship, path, list or map as text; anything else as it is.

    >>> display([1, 2]), display({"a": None}), display(0.5)
    ('[1, 2]', '{a: null}', 0.5)
    >>> display(list(range(100)))
    '[0, 1, 2, 3, 4, 5, … 100 in all]'
    """
    if isinstance(value, Node):
        labels = "".join(f":{label}" for label in sorted(value.labels))
        return f"({labels} {_map(dict(value.items()))})"
    if isinstance(value, Relationship):
        return f"[:{value.type} {_map(dict(value.items()))}]"
    if isinstance(value, Path):
        return _path(value)
    if isinstance(value, list):
        return _list(value)
    if isinstance(value, dict):
        return _map(value)
    return value


def _path(path: Path) -> str:
    parts = [str(display(path.start_node))]
    for relationship, start, end in zip(
        path.relationships, path.nodes, path.nodes[1:], strict=False
    ):
        forwards = relationship.start_node == start
        drawn = display(relationship)
        parts.append(f"-{drawn}->" if forwards else f"<-{drawn}-")
        parts.append(str(display(end)))
    return "".join(parts)


def _list(values: list[Any]) -> str:
    shown = ", ".join(_inside(value) for value in values[:MAX_ITEMS_SHOWN])
    rest = f", … {len(values)} in all" if len(values) > MAX_ITEMS_SHOWN else ""
    return f"[{shown}{rest}]"


def _map(values: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {_inside(value)}" for name, value in values.items()) + "}"


def _inside(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        cut = value if len(value) <= MAX_TEXT_CHARS else value[:MAX_TEXT_CHARS] + "…"
        return "'" + cut.replace("'", "\\'") + "'"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4g}" if isinstance(value, float) else str(display(value))
