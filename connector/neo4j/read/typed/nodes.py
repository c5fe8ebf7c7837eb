"""Nodes of one label with their raw columns: all of them, new ones, or those with some keys."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import NodeMapping, TypedMapping
from ringfence.connector.mirror.typed import RawBlock, context_key
from ringfence.connector.mirror.typed.mirror import CLASSIFIED
from ringfence.connector.neo4j.bolt import BrokenRecordError
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import NodeBlock, node_block
from ringfence.connector.neo4j.read.id_ranges import IdRange, id_ranges
from ringfence.connector.neo4j.read.incremental import RECORDS_IN_FLIGHT, language
from ringfence.connector.neo4j.read.typed.counts import count_label
from ringfence.connector.neo4j.read.typed.values import plain_column
from ringfence.connector.neo4j.times import as_parameter, checked_ns_expression

MAX_ROWS_PER_BLOCK = 2_000  # a list of 10,000 numbers per node may be among them

NODES = """
MATCH (n:{label}) {where}
WITH collect(n) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS block
RETURN [n IN block | elementId(n)] AS ids, [n IN block | n.{key}] AS keys,
  [n IN block | {class_}] AS classes, {times} AS ns{columns}
"""

ALL_KEYS = """
MATCH (n:{label}) {where}
WITH collect(n) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS block
RETURN [n IN block | elementId(n)] AS ids, [n IN block | n.{key}] AS keys
"""

# The driver has no years beyond 9999: such a value is missing.
IN_RANGE = """CASE WHEN {0} IS :: DATE OR {0} IS :: LOCAL DATETIME OR {0} IS :: ZONED DATETIME
  THEN CASE WHEN {0}.year < 1 OR {0}.year > 9999 THEN null ELSE {0} END ELSE {0} END"""


@dataclass(frozen=True, slots=True)
class LabelReader:
    """Reads nodes of one label of a mapping; a node without a creation time gets `now_ns`."""

    graph: Graph
    mapping: TypedMapping
    label: int
    rows: int
    now_ns: int

    @property
    def node(self) -> NodeMapping:
        """The label's names."""
        return self.mapping.nodes[self.label]

    def read_all(self) -> Generator[RawBlock, None, None]:
        """Yield all nodes."""
        for part in self._ranges():
            yield from self._blocks(part.where(), **part.parameters)

    def read_since(self, since_ns: int, expected: int) -> Generator[RawBlock, None, None]:
        """Yield nodes created at `since_ns` or later; `expected` says about how many are new."""
        where = f"WHERE n.{quote(str(self.node.created_at))} >= $since"
        since = as_parameter(self.mapping.time_kind, since_ns)
        spoken = language(self.graph)
        for part in id_ranges(self.graph, self.node.label, expected, spoken):
            yield from self._blocks(part.where(where), since=since, **part.parameters)

    def read_ids(self, ids: Sequence[str]) -> Generator[RawBlock, None, None]:
        """Yield nodes by their ids, if they still exist."""
        for start in range(0, len(ids), self.rows):
            part = list(ids[start : start + self.rows])
            yield from self._blocks("WHERE elementId(n) IN $ids", ids=part)

    def read_by_key(self, keys: Sequence[str]) -> Generator[RawBlock, None, None]:
        """Yield the nodes that have these typed keys."""
        where = f"WHERE n.{quote(self.node.key)} IN $keys"
        for start in range(0, len(keys), self.rows):
            part = [decode_key(key) for key in keys[start : start + self.rows]]
            yield from self._blocks(where, keys=part)

    def read_keys(self, rows: int) -> Generator[tuple[list[str], list[Any]], None, None]:
        """Yield ids and keys of all nodes, as the graph has them; nothing else is read."""
        names = {"label": quote(self.node.label), "key": quote(self.node.key)}
        for part in self._ranges():
            query = f"{language(self.graph)} {ALL_KEYS.format(**names, where=part.where())}"
            for record in self.graph.stream(query, RECORDS_IN_FLIGHT, rows=rows, **part.parameters):
                yield record["ids"], record["keys"]

    def _ranges(self) -> list[IdRange]:
        """Ranges of ids that hold all nodes of the label."""
        expected = count_label(self.graph, self.node.label)
        return id_ranges(self.graph, self.node.label, expected, language(self.graph))

    def _blocks(self, where: str, **parameters: object) -> Generator[RawBlock, None, None]:
        """Where a value can't travel, all are read again with a check of every value.

        Nodes that were yielded before come twice, and a mirror drops them by their keys.
        """
        parameters["rows"] = min(self.rows, MAX_ROWS_PER_BLOCK)
        try:
            yield from self._stream(self._query(where, "{0}"), parameters)
        except BrokenRecordError:
            yield from self._stream(self._query(where, IN_RANGE), parameters)

    def _stream(self, query: str, parameters: dict[str, object]) -> Generator[RawBlock, None, None]:
        for record in self.graph.stream(
            f"{language(self.graph)} {query}", RECORDS_IN_FLIGHT, **parameters
        ):
            ids, keys, classes, ns, *columns = record.values()
            if not self.node.created_at:
                ns = [self.now_ns] * len(ids)
            yield self._block(ids, keys, [_class(one) for one in classes], ns, columns)

    def _block(
        self,
        ids: list[str],
        keys: list[Any],
        classes: list[Any],
        ns: list[Any],
        columns: list[list[Any]],
    ) -> RawBlock:
        """Usable nodes; only a key or a creation time can keep one out."""
        positions = np.arange(len(ids), dtype=np.float32).reshape(-1, 1)
        good = node_block(1, ids, keys, positions, classes, ns)
        here = good.features[:, 0].astype(np.int64)
        raw = [plain_column(column) for column in columns]
        return RawBlock(
            self.label,
            _keys_in_mirror(self.label, good),
            raw if len(here) == len(ids) else [[one[at] for at in here.tolist()] for one in raw],
            good.classes,
            _times(good),
            good.rejected,
        )

    def _query(self, where: str, value: str) -> str:
        node, created = self.node, self.node.created_at
        columns = "".join(
            f",\n  [n IN block | {value.format(f'n.{quote(name)}')}] AS c{at}"
            for at, name in enumerate(node.column_names)
        )
        classified = self.label == CLASSIFIED
        ns = checked_ns_expression(self.mapping.time_kind, "t")
        return NODES.format(
            label=quote(node.label),
            where=where,
            key=quote(node.key),
            class_=f"n.{quote(self.mapping.class_property)}" if classified else "null",
            times=f"[t IN [n IN block | n.{quote(created)}] | {ns}]" if created else "[]",
            columns=columns,
        )


def _class(value: Any) -> Any:
    """A class that is neither text, integer nor boolean counts as not known."""
    return value if isinstance(value, str | int) else None


def _keys_in_mirror(label: int, block: NodeBlock) -> list[str]:
    return [context_key(label, key) for key in block.keys]


def _times(block: NodeBlock) -> NDArray[np.int64]:
    return block.created_ns
