"""The neighbours of a node from the graph, with what SQL knows of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringfence.connector.errors import RingfenceError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.neo4j.queries.neighbours import neighbours_of
from ringfence.connector.store.queries.nodes import roles_of, sets_of
from ringfence.connector.store.queries.project import ProjectQueries

if TYPE_CHECKING:
    from ringfence.connector.mapping import GraphMapping
    from ringfence.connector.neo4j.driver import Graph

MAX_NEIGHBOURS = 24


@dataclass(frozen=True, slots=True)
class ExplainedNeighbour:
    """A neighbour with its class in the graph, its set, and its role in training, where any.

    `label` is empty for nodes of the classified label; only those have a class, a set or a role.
    """

    key: str
    class_: str | None
    set: tuple[str, ...] | None
    role: str | None
    label: str = ""
    relation: str = ""
    typed_key: str = ""

    @property
    def name(self) -> str:
        """The key, with its label where that is not the classified one."""
        return f"{self.label} {self.key}" if self.label else self.key

    def as_json(self) -> JsonObject:
        """Return the values under the keys of `ringfence explain --json`."""
        return {
            "key": self.key,
            "class": self.class_,
            "set": self.set,
            "role": self.role,
            "label": self.label or None,
            "relation": self.relation or None,
        }


def neighbours_if_reached(
    queries: ProjectQueries, graph: Graph | None, mapping: GraphMapping | None, typed_key: str
) -> tuple[ExplainedNeighbour, ...] | None:
    """Return neighbours from the graph; None if it can't be asked."""
    if graph is None or mapping is None:
        return None
    try:
        return explain_neighbours(queries, graph, mapping, typed_key)
    except RingfenceError:
        return None


def explain_neighbours(
    queries: ProjectQueries,
    graph: Graph,
    mapping: GraphMapping,
    typed_key: str,
    label: str = "",
    limit: int = MAX_NEIGHBOURS,
) -> tuple[ExplainedNeighbour, ...]:
    """Return neighbours of every mapped label from the graph, with what SQL knows of them."""
    neighbours = neighbours_of(graph, mapping, typed_key, limit, label)
    typed_keys = [neighbour.typed_key for neighbour in neighbours if not neighbour.label]
    sets, roles = sets_of(queries, typed_keys), roles_of(queries, typed_keys)
    return tuple(
        ExplainedNeighbour(
            neighbour.key,
            neighbour.class_,
            None if neighbour.label else sets.get(neighbour.typed_key),
            None if neighbour.label else roles.get(neighbour.typed_key),
            neighbour.label,
            neighbour.relation,
            neighbour.typed_key,
        )
        for neighbour in neighbours
    )
