"""Entries of the worklist: classes in the sets of a run, written when the run is decided."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, insert, select, update

from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Prediction
from ringfence.connector.store.blocks import ROWS_PER_STATEMENT, split
from ringfence.connector.store.tables import model, worklist_entry

Row = dict[str, Any]


def insert_entries(
    connection: Connection,
    project: str,
    version: str,
    seq: int,
    decided: PredictionTable | Sequence[Prediction],
) -> None:
    """Write the entries of a run inside the transaction that decides it."""
    terms = {"project": project, "seq": seq, "known": False}
    for block in _blocks(connection, project, version, decided):
        if block:
            connection.execute(insert(worklist_entry), [terms | row for row in block])


def mark_known(connection: Connection, project: str, keys: Sequence[str]) -> None:
    """Say that the classes of some nodes became known."""
    for part in split(keys):
        connection.execute(
            update(worklist_entry)
            .where(
                worklist_entry.c.project == project,
                worklist_entry.c.node_key.in_(part),
                worklist_entry.c.known.is_(False),
            )
            .values(known=True)
        )


def entries_of(
    node_key: str, classes: Sequence[str], p_values: Mapping[str, float], degree: int
) -> list[Row]:
    """Return what a prediction says of each class in its set.

    >>> entries_of("i:7", ["b"], {"a": 0.05, "b": 0.6}, 3)
    [{'node_key': 'i:7', 'class': 'b', 'p': 0.6, 'size': 1, 'degree': 3}]
    """
    size = len(classes)
    return [
        {"node_key": node_key, "class": name, "p": p_values[name], "size": size, "degree": degree}
        for name in classes
        if name in p_values
    ]


def _blocks(
    connection: Connection,
    project: str,
    version: str,
    decided: PredictionTable | Sequence[Prediction],
) -> Iterator[list[Row]]:
    if isinstance(decided, PredictionTable):
        for block in decided.blocks_by_key(ROWS_PER_STATEMENT):
            yield _table_rows(block)
        return
    names = _class_names(connection, project, version)
    for part in split(decided):
        yield [
            row
            for one in part
            for row in entries_of(
                one.node_key, one.classes, dict(zip(names, one.p_values, strict=False)), one.degree
            )
        ]


def _table_rows(block: PredictionTable) -> list[Row]:
    nodes, places = np.nonzero(block.sets)
    sizes, degrees = block.sets.sum(axis=1).tolist(), block.degrees.tolist()
    p_values = block.p_values[nodes, places].tolist()
    return [
        {
            "node_key": block.keys[node], "class": block.class_names[place], "p": p,
            "size": sizes[node], "degree": degrees[node],
        }
        for node, place, p in zip(nodes.tolist(), places.tolist(), p_values, strict=True)
    ]  # fmt: skip


def _class_names(connection: Connection, project: str, version: str) -> list[str]:
    """The classes of a model in the order of the p-values; none where it has no manifest."""
    query = select(model.c.manifest).where(model.c.project == project, model.c.version == version)
    manifest = connection.execute(query).scalar()
    return [] if manifest is None else list(json.loads(manifest).get("classes", []))
