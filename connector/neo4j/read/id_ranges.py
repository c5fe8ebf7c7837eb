"""Nodes of a label, or relationships, in ranges of ids: the server collects one range at a time.

A query that returns few wide records collects references to its nodes first, about 50 bytes of the
server's memory for each. One query over 100 million nodes would hold gigabytes; by ranges each
holds those of one range, whatever the size of the graph. Ranges divide the ids between the label's
lowest and highest into equal parts, twice as many as even ids would need: ids that crowd together
may fill one further. A range costs the server one more scan of the label, so small graphs are read
in one, and the number of ranges follows the nodes of the label, not the ids of the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringfence.connector.errors import GraphError
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote

MAX_COLLECTED = 4_000_000  # nodes that one query may collect, where ids are spread evenly
BUCKETS = 1_024  # of ids, in which relationships are counted
SPARE = 2  # times as many ranges as even ids would need


@dataclass(frozen=True, slots=True)
class IdRange:
    """Ids from `low` on and below `high`; without one there is no bound."""

    low: int | None = None
    high: int | None = None

    def where(self, before: str = "", name: str = "n") -> str:
        """Return the condition on a query's `name`, after another one that begins with WHERE.

        >>> IdRange(0, 5).where(), IdRange().where("WHERE n.a")
        ('WHERE id(n) >= $low AND id(n) < $high', 'WHERE n.a')
        """
        bounds = {f"id({name}) >= $low": self.low, f"id({name}) < $high": self.high}
        parts = [text for text, bound in bounds.items() if bound is not None]
        if not parts:
            return before
        return f"{f'{before} AND' if before else 'WHERE'} {' AND '.join(parts)}"

    @property
    def parameters(self) -> dict[str, object]:
        """The condition's parameters."""
        bounds = {"low": self.low, "high": self.high}
        return {name: bound for name, bound in bounds.items() if bound is not None}


def id_ranges(graph: Graph, label: str, expected: int, language: str) -> list[IdRange]:
    """Return ranges that hold all nodes of a label, of which there are about `expected`.

    Nodes that come meanwhile have ids in any range, or above all of them: the last one is open. A
    server without numeric ids gets one range.
    """
    if expected <= MAX_COLLECTED:
        return [IdRange()]
    try:
        query = f"{language} MATCH (n:{quote(label)}) RETURN min(id(n)) AS low, max(id(n)) AS high"
        ends = graph.read(query)[0]
    except GraphError:
        return [IdRange()]
    return _divided(int(ends["low"] or 0), int(ends["high"] or 0), expected)


def relationship_ranges(
    graph: Graph, type_: str, where: str, parameters: Mapping[str, object]
) -> list[IdRange]:
    """Return ranges of ids that hold all relationships `r` of a type for which `where` holds.

    The type's number, of the count store, tells whether there can be many at all; only then those
    in question are counted, by the index that finds them, in buckets of ids: new ids crowd where
    others were freed.
    """
    pattern = f"MATCH ()-[r:{quote(type_)}]->()"
    if int(graph.read(f"{pattern} RETURN count(r) AS n")[0]["n"]) <= MAX_COLLECTED:
        return [IdRange()]
    span = "RETURN count(r) AS n, min(id(r)) AS low, max(id(r)) AS high"
    try:
        ends = graph.read(f"{pattern} {where} {span}", **parameters)[0]
    except GraphError:  # a server without numeric ids
        return [IdRange()]
    if ends["n"] <= MAX_COLLECTED:
        return [IdRange()]
    low, width = int(ends["low"]), (int(ends["high"]) - int(ends["low"])) // BUCKETS + 1
    counted = f"{pattern} {where} RETURN (id(r) - $low) / $width AS bucket, count(r) AS n"
    rows = graph.read(f"{counted} ORDER BY bucket", low=low, width=width, **parameters)
    return _joined([(low + int(row["bucket"]) * width, int(row["n"])) for row in rows])


def _joined(counts: list[tuple[int, int]]) -> list[IdRange]:
    """Ranges of as many neighbouring buckets as may be collected together.

    >>> ranges = _joined([(0, 3_000_000), (50, 900_000), (70, 2_000_000)])
    >>> [(part.low, part.high) for part in ranges]
    [(None, 70), (70, None)]
    """
    bounds, held = [], 0
    for start, count in counts:
        if held and held + count > MAX_COLLECTED:
            bounds.append(start)
            held = 0
        held += count
    return _between(bounds)


def _divided(low: int, high: int, expected: int) -> list[IdRange]:
    count = SPARE * expected // MAX_COLLECTED + 1
    step = (high - low) // count + 1
    return _between(list(range(low + step, high + 1, step)))


def _between(bounds: list[int]) -> list[IdRange]:
    """Ranges that meet at the bounds, the first and the last one open."""
    lows: list[int | None] = [None, *bounds]
    highs: list[int | None] = [*bounds, None]
    return [IdRange(*ends) for ends in zip(lows, highs, strict=True)]
