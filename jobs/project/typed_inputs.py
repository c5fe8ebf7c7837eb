"""From a mirror of several labels to the arrays that a typed network takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError
from ringfence.connector.mapping import NodeMapping, TypedMapping
from ringfence.connector.mirror.typed import TypedMirror
from ringfence.models.encoders import (
    ColumnChoice,
    EncoderRefused,
    TableEncoder,
    fit_table,
    infer_kind,
)
from ringfence.models.schema import CLASSIFIED, Relation, TypedSchema

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

ENCODER = "encoder."  # what the names of the encoders' arrays begin with, then label and name
MANIFEST_KEY = "typed"
BYTES_PER_STEP = 16e6  # of raw columns that are encoded at a time
MAX_BYTES_TO_FIT = 128e6  # of raw columns; as Python's own values they take about eight times that
MIN_ROWS_TO_FIT = 1_000


def schema_of(mapping: TypedMapping) -> TypedSchema:
    """Return the labels and relations of the configuration as `models` takes them."""
    return TypedSchema(
        tuple(node.label for node in mapping.nodes),
        tuple(
            Relation(one.source, one.type, one.target, one.undirected, one.after_evaluation)
            for one in mapping.relations
        ),
    )


@dataclass(frozen=True, slots=True)
class TypedEncoders:
    """The encoders of a model by label, and the columns that it leaves out, with the reason."""

    tables: tuple[TableEncoder, ...]
    left_out: dict[str, str]

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns by label."""
        return tuple(table.width for table in self.tables)

    def encode(self, typed: TypedMirror, label: int, rows: Ints) -> Float32s:
        """Return the encoded rows of some nodes of a label [n, width], so many at a time."""
        out = np.empty((len(rows), self.tables[label].width), np.float32)
        step = max(1, int(BYTES_PER_STEP / max(typed.tables[label].mean_bytes, 1)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            columns = typed.columns(label, part)
            out[start : start + step] = self.tables[label].transform(columns, len(part))
        return out

    def blank(self) -> tuple[Float32s, ...]:
        """By label, the row of a node none of whose columns are known."""
        return tuple(table.transform({}, 1)[0] for table in self.tables)

    def facts(self) -> dict[str, Any]:
        """Return what a manifest holds of them."""
        return {
            "encoders": [table.to_json() for table in self.tables],
            "left_out": self.left_out,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is too long for a manifest, by name."""
        return {
            f"{ENCODER}{label}.{name}": array
            for label, table in enumerate(self.tables)
            for name, array in table.arrays().items()
        }

    @classmethod
    def restore(
        cls, facts: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> TypedEncoders:
        """Return the encoders of a manifest and of the arrays beside the weights."""
        tables = []
        for label, one in enumerate(facts["encoders"]):
            front = f"{ENCODER}{label}."
            own = {
                name.removeprefix(front): array
                for name, array in weights.items()
                if name.startswith(front)
            }
            tables.append(TableEncoder.from_json(one, own))
        return cls(tuple(tables), dict(facts["left_out"]))


def fit_encoders(typed: TypedMirror, mapping: TypedMapping, training: Ints) -> TypedEncoders:
    """Fit the encoders: of the classified label on training nodes, of context on all nodes.

    Rows are taken in the order of keys, so that the order of reading changes nothing. Where they
    hold more than `MAX_BYTES_TO_FIT`, evenly spaced ones are enough.
    """
    tables: list[TableEncoder] = []
    left_out: dict[str, str] = {}
    for label, node in enumerate(mapping.nodes):
        rows = training if label == CLASSIFIED else rows_by_key(typed, label)
        columns = typed.columns(label, _thinned(typed, label, rows))
        choices, left = choose_columns(node, columns)
        left_out |= left
        try:
            tables.append(fit_table(columns, choices))
        except EncoderRefused as error:
            raise ConfigError(
                found=f"[graph.columns] of {node.label}: {error}",
                needed="a kind and options that the column's values fit",
                next_step="correct [graph.columns], then: ringfence doctor",
            ) from None
    if all(len(table.encoders) == 0 for table in tables):
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise ConfigError(
            found=f"no column of any label can be used ({reasons or 'none is named'})",
            needed="at least one property to learn from",
            next_step="name columns in [[graph.nodes]]; ringfence init proposes some",
        )
    return TypedEncoders(tuple(tables), left_out)


def _thinned(typed: TypedMirror, label: int, rows: Ints) -> Ints:
    """Rows to fit on: all, or evenly spaced ones where their raw columns would fill the memory."""
    most = max(MIN_ROWS_TO_FIT, int(MAX_BYTES_TO_FIT / max(typed.tables[label].mean_bytes, 1)))
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def rows_by_key(typed: TypedMirror, label: int) -> Ints:
    """Return the rows of a label in the order of their keys."""
    rows = typed.rows_of_label(label)
    keys = typed.base.keys.take(rows.tolist())
    return rows[sorted(range(len(keys)), key=keys.__getitem__)]


def choose_columns(
    node: NodeMapping, columns: Mapping[str, list[Any]]
) -> tuple[dict[str, ColumnChoice], dict[str, str]]:
    """Kinds of the columns, by the configuration or by their values; and what is left out."""
    choices: dict[str, ColumnChoice] = {}
    left: dict[str, str] = {}
    for column in node.columns:
        if column.kind is not None and column.name in columns:
            choices[column.name] = ColumnChoice(column.kind, dict(column.options))
            continue
        found = infer_kind(columns.get(column.name, []))
        if found.usable:
            choices[column.name] = ColumnChoice(found.kind, dict(column.options))
        else:
            left[f"{node.label}.{column.name}"] = found.reason
    return choices, left
