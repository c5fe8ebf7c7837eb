"""How far a read may move the watermark, and cheap checks that nothing was missed.

A transaction stamps `created_at` now and commits later, so a plain "newer than the newest I saw"
loses nodes. The server's clock is read first, then the start of the oldest open transaction; the
next watermark is the smaller of the two. Every read goes back by an overlap besides, for clients
that stamp with clocks of their own. A user without the right sees their own transactions alone, and
the list does not say that it is short: the watermark then stays behind the clock by a set time.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.times import VALUE_TYPE
from ringfence.connector.times import NANOSECONDS

LONG_OPEN_SECONDS = 60
UNSEEN_SECONDS = 300.0  # [engine] unseen_transaction_seconds


@dataclass(frozen=True, slots=True)
class Horizon:
    """The watermark that a read starting now may reach, and what held it back."""

    watermark_ns: int
    note: str


CLOCK = "WITH datetime.realtime() AS t RETURN t.epochSeconds * 1000000000 + t.nanosecond AS ns"
# startTime is text that leaves out trailing zeros: "…:05.11Z" sorts behind "…:05.117Z" as text
OPEN_TRANSACTIONS = (
    "SHOW TRANSACTIONS YIELD startTime RETURN min(datetime(startTime).epochMillis) AS oldest_ms"
)
NANOSECONDS_PER_MS = 1_000_000


def horizon(graph: Graph, unseen_seconds: float = UNSEEN_SECONDS) -> Horizon:
    """Read the server's clock, then the oldest open transaction; the order matters.

    The querying transaction is open itself, but began after the clock was read. In a cluster the
    leader is queried, where all is written: a follower's clock may be ahead of its data. Where the
    list may be short, the watermark is `unseen_seconds` behind the clock at least.
    """
    server_ns = int(graph.read_newest(CLOCK)[0]["ns"])
    try:
        oldest_ms = graph.read_newest(OPEN_TRANSACTIONS)[0]["oldest_ms"]
    except GraphError:
        return _behind(server_ns, server_ns, unseen_seconds)
    start_ns = server_ns if oldest_ms is None else min(oldest_ms * NANOSECONDS_PER_MS, server_ns)
    if not graph.rights.sees_all_transactions(graph.database):
        return _behind(server_ns, start_ns, unseen_seconds)
    held = (server_ns - start_ns) / NANOSECONDS
    long = f"a transaction open for {held:.0f} s holds the watermark back"
    return Horizon(start_ns, long if held > LONG_OPEN_SECONDS else "")


def _behind(server_ns: int, start_ns: int, unseen_seconds: float) -> Horizon:
    return Horizon(
        min(start_ns, server_ns - int(unseen_seconds * NANOSECONDS)),
        "open transactions of other users may not be listed: the watermark stays "
        f"{unseen_seconds:g} s behind the server's clock ([engine] unseen_transaction_seconds)",
    )


def count_nodes(graph: Graph, mapping: GraphMapping) -> int:
    """Return how many nodes carry the classified label: one query to the count store."""
    label = quote(mapping.classified.label)
    return int(graph.read(f"MATCH (n:{label}) RETURN count(n) AS n")[0]["n"])


def count_relationships(graph: Graph, mapping: GraphMapping) -> int:
    """Return how many relationships inside the classified label start there: a query per type."""
    label = quote(mapping.classified.label)
    return sum(
        int(graph.read(f"MATCH (:{label})-[r:{quote(kind)}]->() RETURN count(r) AS n")[0]["n"])
        for kind in (relation.type for relation in mapping.classified_relations)
    )


MIN_SHARE_OF_KIND = 0.1  # a first read with fewer of the configured kind is refused


def check_time_types(
    graph: Graph, mapping: GraphMapping, *, first_read: bool = False, sample: int | None = None
) -> None:
    """Count the types of `created_at` and refuse those that would silently compare as null.

    `ringfence doctor` refuses any other type. A first read refuses only where nearly all values
    are of another one: `[graph] time_kind` is wrong then. A few odd ones go to quarantine. With
    `sample` so many nodes and relationships are looked at, and all where those would be refused.
    """
    labels = [quote(node.label) for node in mapping.nodes]
    places = [
        (f"(n:{label})", node.label, node.created_at)
        for label, node in zip(labels, mapping.nodes, strict=True)
    ]
    for relation in mapping.relations:
        source, target = labels[relation.source], labels[relation.target]
        pattern = f"(:{source})-[n:{quote(relation.type)}]->(:{target})"
        places.append((pattern, relation.type, relation.created_at))
    expected = VALUE_TYPE[mapping.time_kind]
    least = MIN_SHARE_OF_KIND if first_read else 1.0
    for pattern, name, time in places:
        if not time:
            continue
        if sample and _is_expected(_census(graph, pattern, time, sample), expected, least):
            continue
        census = _census(graph, pattern, time)
        if not _is_expected(census, expected, least):
            listed = ", ".join(f"{count} {kind}" for kind, count in census.items())
            raise GraphError(
                found=f":{name}.{time} holds {listed}",
                needed=f"{expected} everywhere: Cypher compares other types as nothing; such nodes "
                "go to quarantine",
                next_step=f"convert them, or set [graph] time_kind ({', '.join(VALUE_TYPE)})",
            )


def _is_expected(census: dict[str, int], expected: str, least: float) -> bool:
    """Whether the least share of the values that are there are of the expected type."""
    held = sum(count for kind, count in census.items() if kind != "NULL")
    return census.get(expected, 0) >= least * held


def _census(graph: Graph, pattern: str, time: str, sample: int | None = None) -> dict[str, int]:
    some = f"WITH n LIMIT {int(sample)} " if sample else ""
    rows = graph.read(
        f"MATCH {pattern} {some}"
        f"RETURN valueType(n.{quote(time)}) AS type, count(*) AS n ORDER BY n DESC"
    )
    return {str(row["type"]).removesuffix(" NOT NULL"): int(row["n"]) for row in rows}
