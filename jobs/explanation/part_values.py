"""Values beside the parts of an answer: the node's columns among other nodes, what a device is.

A number says little until it stands among others: "377.7, lower than 96 % of 812 known retail
nodes". Columns are compared with known nodes of the largest class besides the likeliest one;
neighbours of other labels say which of their yes-or-no properties hold, and who else they are
joined to. All of it is of the mirror, as the last run read it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.keys import decode_key
from ringfence.connector.mirror import UNKNOWN, plain_key
from ringfence.connector.mirror.raw_values import RawDuration, RawPoint
from ringfence.jobs.explanation.explained_node import CODES, ExplainedNode
from ringfence.jobs.explanation.reasons import COLUMN, NEIGHBOUR, Part
from ringfence.models.inference.graph import listed_through
from ringfence.models.schema import CLASSIFIED

Ints = NDArray[np.int64]

MAX_COMPARED = 2_000  # nodes that a value is compared with
MAX_TOLD_CHARS = 40
MAX_FLAGS = 3
Told = dict[Part, str]


@dataclass(frozen=True, slots=True)
class Compared:
    """The known nodes that a node's values are compared with: rows, and how they are called."""

    rows: Ints
    class_: str

    @property
    def words(self) -> str:
        """How many nodes they are, and of which class."""
        return f"{len(self.rows):,} known {self.class_} nodes"


def tell_values(node: ExplainedNode, parts: Sequence[Part], likeliest: str) -> Told:
    """Return words beside each part that has any."""
    told = _tell_columns(node, [part for part in parts if part.kind == COLUMN], likeliest)
    neighbours = [part for part in parts if part.kind == NEIGHBOUR and part.label]
    return told | _tell_neighbours(node, neighbours, likeliest)


def describe_among(value: Any, others: Sequence[Any], whom: str) -> str:
    """Say where a value lies among those of other nodes.

    >>> describe_among(2.5, [1.0, 3.0, 4.0, 5.0], "4 known retail nodes")
    '2.5, lower than 75 % of 4 known retail nodes'
    >>> describe_among("web", ["web", "app"], "2 known retail nodes")
    'web, as 50 % of 2 known retail nodes'
    >>> describe_among(None, [], "")
    'missing'
    """
    text = "missing" if value is None else _text(value)
    if not others:
        return text
    if _is_number(value) or isinstance(value, (dt.date, dt.time)):
        alike = [other for other in others if _is_ordered_with(value, other)]
        if not alike:
            return text
        lower, higher = sum(value < it for it in alike), sum(value > it for it in alike)
        share, way = (lower, "lower") if lower >= higher else (higher, "higher")
        if isinstance(value, dt.date):
            way = {"lower": "earlier", "higher": "later"}[way]
        return f"{text}, {way} than {_percent(share, len(others))} of {whom}"
    same = sum(other == value for other in others)
    return f"{text}, as {_percent(same, len(others))} of {whom}"


def _tell_columns(node: ExplainedNode, parts: Sequence[Part], likeliest: str) -> Told:
    compared = _compared_nodes(node, likeliest)
    rows = np.concatenate([[node.row], compared.rows]).astype(np.int64)
    columns = _columns_of(node, rows)
    return {
        part: describe_among(columns[part.name][0], columns[part.name][1:], compared.words)
        for part in parts
        if part.name in columns
    }


def _columns_of(node: ExplainedNode, rows: Ints) -> dict[str, list[Any]]:
    """Values of classified nodes by column, as a node's questions name them."""
    if node.mirror.has_raw_columns:
        return node.mirror.columns(CLASSIFIED, rows)
    values = node.mirror.feature_rows(rows)
    return {name: values[:, place].tolist() for place, name in node.columns}


def _compared_nodes(node: ExplainedNode, likeliest: str) -> Compared:
    """Known nodes of the largest class besides the likeliest, evenly spread where they are many."""
    mirror = node.mirror
    classes, names = mirror.classes, mirror.class_names
    known = (classes != UNKNOWN) & (mirror.labels[: len(classes)] == CLASSIFIED)
    counts = np.bincount(classes[known], minlength=len(names))
    if likeliest in names:
        counts[names.index(likeliest)] = 0
    if not counts.any():
        return Compared(np.empty(0, np.int64), "")
    largest = int(counts.argmax())
    rows = np.flatnonzero(known & (classes == largest))
    rows = rows[rows != node.row]
    step = max(1, -(-len(rows) // MAX_COMPARED))
    return Compared(rows[::step], names[largest])


def _tell_neighbours(node: ExplainedNode, parts: Sequence[Part], likeliest: str) -> Told:
    """Flags of neighbours of other labels, and the classified nodes that they are joined to."""
    wanted = {(part.label, part.name): part for part in parts}
    mirror, mapping = node.mirror, node.workspace.mapping
    told: Told = {}
    for row in sorted({other for other, _ in node.heard}):
        label = int(mirror.labels[row])
        key = str(decode_key(plain_key(mirror.keys[row])))
        named = mapping.nodes[label].label
        if label == CLASSIFIED or (named, key) not in wanted:
            continue
        words = ", ".join([*_flags(node, label, row), _joined_to(node, row, likeliest)])
        told |= {part: words for part in parts if (part.label, part.name) == (named, key)}
    return told


def _flags(node: ExplainedNode, label: int, row: int) -> list[str]:
    """The names of the yes-or-no properties that hold of a node."""
    columns = node.mirror.columns(label, np.array([row]))
    return [name[:MAX_TOLD_CHARS] for name, (value,) in columns.items() if value is True][
        :MAX_FLAGS
    ]


def _joined_to(node: ExplainedNode, row: int, likeliest: str) -> str:
    """How many other classified nodes a node is joined to, and how many are of a class."""
    mirror = node.mirror
    near = listed_through(node.graph, np.array([row]), np.ones(CODES, np.bool_)).sources
    others = near[(mirror.labels[near] == CLASSIFIED) & (near != node.row)]
    label = node.workspace.mapping.classified.label
    if not len(others):
        return f"joined to no other {label} node"
    place = mirror.class_names.index(likeliest) if likeliest in mirror.class_names else UNKNOWN - 1
    of_class = int(np.count_nonzero(mirror.classes[others] == place))
    return f"shared with {len(others):,} other {label} nodes, of which {of_class:,} are {likeliest}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_ordered_with(value: Any, other: Any) -> bool:
    if _is_number(value):
        return _is_number(other)
    aware = getattr(value, "tzinfo", None) is None
    return type(other) is type(value) and (getattr(other, "tzinfo", None) is None) == aware


def _percent(share: int, whole: int) -> str:
    return f"{100 * share / whole:.0f} %"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_number(value):
        return f"{value:.6g}"
    if isinstance(value, (list, bytes)):
        return f"{len(value):,} values"
    if isinstance(value, RawDuration):
        return f"{value.months} months, {value.days} days, {value.seconds} s"
    if isinstance(value, RawPoint):
        return ", ".join(f"{coordinate:.6g}" for coordinate in value)
    text = str(value)
    return text if len(text) <= MAX_TOLD_CHARS else f"{text[:MAX_TOLD_CHARS]}…"
