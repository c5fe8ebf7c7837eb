"""Nodes of one label with their properties: all of them, new ones, or by keys or ids."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import GraphMapping, NodeMapping
from ringfence.connector.mirror import CLASSIFIED, TypedKeys
from ringfence.connector.mirror.blocks import AnyBlock
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import mirror_keys
from ringfence.connector.neo4j.read.id_ranges import IdRange, id_ranges
from ringfence.connector.neo4j.read.properties import (
    REFUSALS,
    Answer,
    Properties,
    Question,
    properties_of,
)
from ringfence.connector.neo4j.read.streams import RECORDS_IN_FLIGHT, Share, shares
from ringfence.connector.neo4j.read.vectors import cypher_prefix
from ringfence.connector.neo4j.times import as_parameter, checked_ns_expression

# The client pays per record, 25 to 40 microseconds, and per value inside one only a small part of
# that. So the server collects references, cuts the list, and returns few wide records of columns.
NODES = """
MATCH (n:{label}) {where}
WITH collect(n) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS block
RETURN [n IN block | elementId(n)] AS ids, [n IN block | n.{key}] AS keys,
  [n IN block | {class_}] AS classes, {times} AS ns{properties}
"""

ALL_KEYS = """
MATCH (n:{label}) {where}
WITH collect(n) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS block
RETURN [n IN block | elementId(n)] AS ids, [n IN block | n.{key}] AS keys
"""

KEYS_PER_RECORD = 50_000
IDS_PER_QUERY = 100_000  # ids that one query is asked for


@dataclass(frozen=True, slots=True)
class LabelReader:
    """Reads nodes of one label of a mapping.

    `width` is that of strict features; a node of a label without creation times gets `now_ns`.
    """

    graph: Graph
    mapping: GraphMapping
    label: int
    rows: int
    width: int = 0
    now_ns: int = 0

    @property
    def node(self) -> NodeMapping:
        """The label's names."""
        return self.mapping.nodes[self.label]

    @property
    def properties(self) -> Properties:
        """How the label's properties are read."""
        return properties_of(self.graph, self.mapping, self.label, self.width)

    def read_all(self, expected: int) -> Iterator[AnyBlock]:
        """Yield all nodes, in two streams where there are many; `expected` says about how many."""
        ranges = self.ranges(expected)
        streams = (self.read_share(share, ranges) for share in shares(self.graph, expected))
        return prefetch(*streams)

    def read_share(
        self, share: Share, ranges: Sequence[IdRange] = (IdRange(),)
    ) -> Generator[AnyBlock, None, None]:
        """Yield the nodes of one stream's share."""
        for part in ranges:
            where, parameters = share.within(part)
            yield from self._blocks(where, **parameters)

    def read_since(self, since_ns: int, expected: int = 0) -> Generator[AnyBlock, None, None]:
        """Yield nodes created at `since_ns` or later; about `expected` of them may be new."""
        where = f"WHERE n.{quote(str(self.node.created_at))} >= $since"
        since = as_parameter(self.mapping.time_kind, since_ns)
        for part in self.ranges(expected):
            yield from self._blocks(part.where(where), since=since, **part.parameters)

    def read_ids(self, ids: Sequence[str]) -> Generator[AnyBlock, None, None]:
        """Yield nodes by their ids, if they still exist."""
        for start in range(0, len(ids), IDS_PER_QUERY):
            part = list(ids[start : start + IDS_PER_QUERY])
            yield from self._blocks("WHERE elementId(n) IN $ids", ids=part)

    def read_by_key(self, keys: Sequence[str]) -> Generator[AnyBlock, None, None]:
        """Yield the nodes that have these typed keys."""
        where = f"WHERE n.{quote(self.node.key)} IN $keys"
        for start in range(0, len(keys), self.rows):
            part = [decode_key(key) for key in keys[start : start + self.rows]]
            yield from self._blocks(where, keys=part)

    def read_keys(self, expected: int) -> Generator[tuple[list[str], TypedKeys], None, None]:
        """Yield ids, and keys as the mirror has them, of all nodes; nothing else is read."""
        names = {"label": quote(self.node.label), "key": quote(self.node.key)}
        for part in self.ranges(expected):
            query = f"{cypher_prefix(self.graph)} {ALL_KEYS.format(**names, where=part.where())}"
            asked = {"rows": KEYS_PER_RECORD, **part.parameters}
            for record in self.graph.stream(query, RECORDS_IN_FLIGHT, **asked):
                yield record["ids"], mirror_keys(self.label, record["keys"])

    def ranges(self, expected: int) -> list[IdRange]:
        """Return ranges of ids that hold all nodes of the label."""
        return id_ranges(self.graph, self.node.label, expected, cypher_prefix(self.graph))

    def _blocks(self, where: str, **parameters: object) -> Generator[AnyBlock, None, None]:
        """Yield the nodes `n` for which `where` holds.

        Where the server refuses, all of them are asked for again in the next way: nodes that were
        yielded before come twice, and a mirror drops them by their keys.
        """
        parameters["rows"] = self.properties.limit_rows(self.rows)
        *trusted, checked = self.properties.questions()
        for question in trusted:
            try:
                yield from self._stream(where, question, parameters)
                return
            except REFUSALS:
                continue
        yield from self._stream(where, checked, parameters)

    def _stream(
        self, where: str, question: Question, parameters: dict[str, object]
    ) -> Generator[AnyBlock, None, None]:
        query = f"{cypher_prefix(self.graph)} {self._query(where, question.cypher)}"
        asked = {**parameters, **question.parameters}
        for record in self.graph.stream(query, RECORDS_IN_FLIGHT, **asked):
            ids, keys, classes, ns, *values = record.values()
            answer = Answer(ids, keys, classes, self._times(ids, ns))
            yield self.properties.make_block(self.label, answer, values)

    def _times(self, ids: list[str], ns: list[Any]) -> list[Any]:
        return ns if self.node.created_at else [self.now_ns] * len(ids)

    def _query(self, where: str, properties: str) -> str:
        created = self.node.created_at
        ns = checked_ns_expression(self.mapping.time_kind, "t")
        class_ = f"n.{quote(self.mapping.class_property)}"
        return NODES.format(
            label=quote(self.node.label),
            where=where,
            key=quote(self.node.key),
            class_=class_ if self.label == CLASSIFIED else "null",
            times=f"[t IN [n IN block | n.{quote(created)}] | {ns}]" if created else "[]",
            properties=f",\n  {properties}" if properties else "",
        )
