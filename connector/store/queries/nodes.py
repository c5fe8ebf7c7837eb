"""What SQL knows of single nodes, by their typed keys: sets, classes, groups, roles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from ringfence.connector.keys import (
    next_record_key,
    record_key,
    split_record_key,
    typed_key_of,
)
from ringfence.connector.records import NoticedLabel, StoredPrediction
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import ChainSeal
from ringfence.connector.store.rows import PREDICTION, prediction_from_row
from ringfence.connector.store.tables import audit, grouping, label, member, prediction


def find_prediction(queries: ProjectQueries, keys: Sequence[str]) -> StoredPrediction | None:
    """Return the prediction of the first of `keys` that was evaluated; None where none was.

    Of several nodes that had a key, one after the other, it is the newest one's. A key with a
    number (`0@i:7`) is that node's.
    """
    for key in keys:
        node_keys = [node.node_key for node in nodes_of_key(queries, typed_key_of(key))]
        if key[:1].isdecimal():  # else every one of them is meant
            node_keys = [name for name in node_keys if name == record_key(*split_record_key(key))]
        if node_keys:
            query = select(*PREDICTION).where(
                prediction.c.project == queries.project, prediction.c.node_key == node_keys[-1]
            )
            return next(iter(queries.records(query, prediction_from_row)), None)
    return None


@dataclass(frozen=True, slots=True)
class NodeOfKey:
    """One of the nodes that had a key: the record's key, and the run that evaluated it."""

    node_key: str
    seq: int


def nodes_of_key(queries: ProjectQueries, typed_key: str) -> list[NodeOfKey]:
    """Return the evaluated nodes that had a key, one after the other."""
    nodes: list[NodeOfKey] = []
    key = typed_key
    while row := queries.first(
        select(prediction.c.seq).where(
            prediction.c.project == queries.project, prediction.c.node_key == key
        )
    ):
        nodes.append(NodeOfKey(key, int(row["seq"])))
        key = next_record_key(key)
    return nodes


def noticed_labels(queries: ProjectQueries, typed_key: str) -> list[NoticedLabel]:
    """Return the classes of a node that audits noticed, the first one first."""
    query = select(label).where(label.c.project == queries.project, label.c.node_key == typed_key)
    return [NoticedLabel(**row) for row in queries.rows(query.order_by(label.c.noticed_ns))]


def groups_of(queries: ProjectQueries, typed_key: str) -> dict[str, str]:
    """Return a node's groups: property and value."""
    query = select(grouping.c.property, grouping.c.value).where(
        grouping.c.project == queries.project, grouping.c.node_key == typed_key
    )
    return {row["property"]: row["value"] for row in queries.rows(query)}


def sets_of(queries: ProjectQueries, typed_keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the sets of those nodes that were evaluated, by typed key; the newest of each."""
    sets: dict[str, tuple[str, ...]] = {}
    keys = list(typed_keys)
    while keys:
        query = select(prediction.c.node_key, prediction.c.classes).where(
            prediction.c.project == queries.project, prediction.c.node_key.in_(keys)
        )
        rows = queries.rows(query)
        sets |= {typed_key_of(row["node_key"]): tuple(json.loads(row["classes"])) for row in rows}
        keys = [next_record_key(row["node_key"]) for row in rows]
    return sets


def roles_of(queries: ProjectQueries, typed_keys: Sequence[str]) -> dict[str, str]:
    """Return what a model used those nodes for that are labelled nodes of one, by key."""
    query = select(member.c.node_key, member.c.role).where(
        member.c.project == queries.project, member.c.node_key.in_(typed_keys)
    )
    return {row["node_key"]: row["role"] for row in queries.rows(query)}


def chain_entry_of(queries: ProjectQueries, seq: int) -> ChainSeal | None:
    """Return number and hash of the chain entry that decided a run."""
    row = queries.first(
        select(audit.c.n, audit.c.hash).where(
            audit.c.project == queries.project,
            audit.c.body.like('%"kind":"decided"%'),
            audit.c.body.like(f'%"seq":{int(seq)},%'),
        )
    )
    return ChainSeal(**row) if row else None


def example_key(queries: ProjectQueries) -> str | None:
    """Return a node with two classes, one of them right, and 6 to 12 neighbours: good to show."""
    row = queries.first(
        select(prediction.c.node_key)
        .where(
            prediction.c.project == queries.project,
            prediction.c.size == 2,
            prediction.c.covered,
            prediction.c.degree.between(6, 12),
        )
        .order_by(prediction.c.seq.desc(), prediction.c.node_key)
    )
    return None if row is None else str(row["node_key"])
