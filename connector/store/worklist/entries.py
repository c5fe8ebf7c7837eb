"""Entries of the worklist: classes in the sets of a run, written when the run is decided."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, select, update

from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Prediction
from ringfence.connector.store.blocks import insert_columns, split
from ringfence.connector.store.rows import ColumnValues
from ringfence.connector.store.tables import model, worklist_entry

Columns = dict[str, list[Any]]
COLUMNS = ("node_key", "class", "p", "size", "degree")


def insert_entries(
    connection: Connection,
    project: str,
    version: str,
    seq: int,
    decided: PredictionTable | Sequence[Prediction],
) -> None:
    """Write the entries of a block of predictions inside the transaction that decides its run."""
    constants = {"project": project, "seq": seq, "known": False}
    if isinstance(decided, PredictionTable):
        columns = _columns_of_table(decided)
    else:
        columns = _columns_of_records(decided, _class_names(connection, project, version))
    insert_columns(connection, worklist_entry, columns, constants)


def mark_known(connection: Connection, project: str, keys: Sequence[str]) -> None:
    """Mark that the classes of some nodes became known."""
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
) -> list[ColumnValues]:
    """Return a row for each class in a prediction's set.

    >>> entries_of("i:7", ["b"], {"a": 0.05, "b": 0.6}, 3)
    [{'node_key': 'i:7', 'class': 'b', 'p': 0.6, 'size': 1, 'degree': 3}]
    """
    size = len(classes)
    return [
        {"node_key": node_key, "class": name, "p": p_values[name], "size": size, "degree": degree}
        for name in classes
        if name in p_values
    ]


def _columns_of_records(block: Sequence[Prediction], names: Sequence[str]) -> Columns:
    rows = [
        row
        for prediction_ in block
        for row in entries_of(
            prediction_.node_key,
            prediction_.classes,
            dict(zip(names, prediction_.p_values, strict=False)),
            prediction_.degree,
        )
    ]
    return {name: [row[name] for row in rows] for name in COLUMNS}


def _columns_of_table(block: PredictionTable) -> Columns:
    nodes, places = np.nonzero(block.sets)
    keys, names = np.array(block.keys, object), np.array(block.class_names, object)
    return {
        "node_key": keys[nodes].tolist(),
        "class": names[places].tolist(),
        "p": block.p_values[nodes, places].tolist(),
        "size": block.sets.sum(axis=1)[nodes].tolist(),
        "degree": block.degrees[nodes].tolist(),
    }


def _class_names(connection: Connection, project: str, version: str) -> list[str]:
    """The classes of a model in the order of the p-values; none where it has no manifest."""
    query = select(model.c.manifest).where(model.c.project == project, model.c.version == version)
    manifest = connection.execute(query).scalar()
    return [] if manifest is None else list(json.loads(manifest).get("classes", []))
