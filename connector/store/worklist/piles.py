"""The nodes of a run by whether a list holds them: counted, and read as far as they are shown.

What a pile shows of a node are its key, lists, set and class; p-values and scores stay unread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, select

from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import prediction

_HERE = prediction.c
_SHOWN = (_HERE.node_key, _HERE.lists, _HERE.classes, _HERE.label)


@dataclass(frozen=True, slots=True)
class PiledNode:
    """A node of a run: the lists that hold it with their shares, its set, its known class."""

    node_key: str
    lists: Mapping[str, float]
    classes: tuple[str, ...]
    label: str | None


def nodes_on_lists(store: Store, project: str, seq: int) -> list[PiledNode]:
    """Return the nodes of a run that are on a list and in the graph."""
    query = select(*_SHOWN).where(*_of_run(project, seq), _HERE.lists.is_not(None))
    with store.reading() as connection:
        return [_piled(row) for row in connection.execute(query)]


def nodes_on_no_list(store: Store, project: str, seq: int, limit: int | None) -> list[PiledNode]:
    """Return the others by key, at most so many; the order is the database's."""
    query = select(*_SHOWN).where(*_of_run(project, seq), _HERE.lists.is_(None))
    with store.reading() as connection:
        rows = connection.execute(query.order_by(_HERE.node_key).limit(limit))
        return [_piled(row) for row in rows]


def count_on_no_list(store: Store, project: str, seq: int) -> int:
    """Return how many these are."""
    query = select(func.count()).where(*_of_run(project, seq), _HERE.lists.is_(None))
    with store.reading() as connection:
        return int(connection.execute(query).scalar_one())


def _of_run(project: str, seq: int) -> tuple[ColumnElement[bool], ...]:
    return _HERE.project == project, _HERE.seq == seq, _HERE.in_graph.is_(True)


def _piled(row: Any) -> PiledNode:
    lists = json.loads(row.lists) if row.lists else {}
    return PiledNode(row.node_key, lists, tuple(json.loads(row.classes)), row.label)
