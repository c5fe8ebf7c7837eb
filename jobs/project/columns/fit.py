"""Fitting the encoders of a model: of nodes, and of relationships with columns.

Values are taken in an order that does not depend on how the graph was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError
from ringfence.connector.mapping import ColumnMapping, GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.jobs.project.columns.column_encoders import NO_RELATIONS, ColumnEncoders, schema_of
from ringfence.jobs.project.columns.relation_means import RelationEncoders
from ringfence.models.encoders import (
    ColumnChoice,
    EncoderRefused,
    TableEncoder,
    fit_table,
    infer_kind,
)
from ringfence.models.schema import CLASSIFIED, TypedSchema

Ints = NDArray[np.int64]

MAX_BYTES_TO_FIT = 128e6  # of raw columns; as Python's own values they take about eight times that
MIN_ROWS_TO_FIT = 1_000


def fit_encoders(mirror: Mirror, mapping: GraphMapping, training: Ints) -> ColumnEncoders:
    """Fit the encoders: of the classified label on training nodes, of context on all nodes.

    Rows are taken in the order of keys, so that the order of reading changes nothing. Where they
    hold more than `MAX_BYTES_TO_FIT`, evenly spaced ones are enough.
    """
    tables: list[TableEncoder] = []
    left_out: dict[str, str] = {}
    for label, node in enumerate(mapping.nodes):
        rows = training if label == CLASSIFIED else rows_by_key(mirror, label)
        columns = mirror.columns(label, _thinned(mirror, label, rows))
        choices, left = choose_columns(node.label, node.columns, columns)
        left_out |= left
        tables.append(_fitted(f"[graph.columns] of {node.label}", columns, choices))
    related, left = fit_relations(mirror, mapping, schema_of(mapping), training)
    left_out |= left
    if all(len(table.encoders) == 0 for table in tables) and not related.tables:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise ConfigError(
            found=f"no column of any label can be used ({reasons or 'none is named'})",
            needed="at least one property to learn from",
            next_step="name columns in [[graph.nodes]] or [[graph.relationships]]; ringfence init "
            "proposes some",
        )
    return ColumnEncoders(tuple(tables), left_out, related if related.tables else NO_RELATIONS)


def fit_relations(
    mirror: Mirror, mapping: GraphMapping, schema: TypedSchema, training: Ints
) -> tuple[RelationEncoders, dict[str, str]]:
    """Fit the encoders of relationships between training nodes and context, by their ids' order.

    Return what is left out beside them, with the reason.
    """
    seen = np.asarray(mirror.labels) != CLASSIFIED
    seen[training] = True
    encoders: dict[int, TableEncoder] = {}
    left_out: dict[str, str] = {}
    for index, table in mirror.related.items():
        relation = mapping.relations[index]
        places = np.flatnonzero(table.live)
        sources, targets = table.ends(places)
        places = places[seen[sources] & seen[targets]]
        places = places[np.argsort(table.numbers.array[places], kind="stable")]
        most = _most_rows(table.records.mean_bytes)
        columns = table.records.columns(_evenly(places, most))
        name = mapping.describe(relation)
        choices, left = choose_columns(name, relation.columns, columns if len(places) else {})
        left_out |= {
            column: reason.replace("node", "relationship") for column, reason in left.items()
        }
        if choices:
            encoders[index] = _fitted(f"[[graph.relationships]] {name}", columns, choices)
    return RelationEncoders(schema, encoders), left_out


def _fitted(
    where: str, columns: Mapping[str, list[Any]], choices: Mapping[str, ColumnChoice]
) -> TableEncoder:
    try:
        return fit_table(columns, choices)
    except EncoderRefused as error:
        raise ConfigError(
            found=f"{where}: {error}",
            needed="a kind and options that the column's values fit",
            next_step="correct it in ringfence.toml, then: ringfence doctor",
        ) from None


def _thinned(mirror: Mirror, label: int, rows: Ints) -> Ints:
    """Rows to fit on: all, or evenly spaced ones where their raw columns would fill the memory."""
    return _evenly(rows, _most_rows(mirror.tables[label].mean_bytes))


def _most_rows(mean_bytes: float) -> int:
    return max(MIN_ROWS_TO_FIT, int(MAX_BYTES_TO_FIT / max(mean_bytes, 1)))


def _evenly(rows: Ints, most: int) -> Ints:
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def rows_by_key(mirror: Mirror, label: int) -> Ints:
    """Return the rows of a label in the order of their keys."""
    rows = mirror.rows_of_label(label)
    keys = mirror.keys.take(rows.tolist())
    return rows[sorted(range(len(keys)), key=keys.__getitem__)]


def choose_columns(
    name: str, wanted: Sequence[ColumnMapping], columns: Mapping[str, list[Any]]
) -> tuple[dict[str, ColumnChoice], dict[str, str]]:
    """Kinds of the columns, by the configuration or by their values; and what is left out."""
    choices: dict[str, ColumnChoice] = {}
    left: dict[str, str] = {}
    for column in wanted:
        if column.kind is not None and column.name in columns:
            choices[column.name] = ColumnChoice(column.kind, dict(column.options))
            continue
        inferred = infer_kind(columns.get(column.name, []))
        if inferred.usable:
            choices[column.name] = ColumnChoice(inferred.kind, dict(column.options))
        else:
            left[f"{name}.{column.name}"] = inferred.reason
    return choices, left
