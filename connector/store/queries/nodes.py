"""What SQL knows of single nodes, by their typed keys: sets, classes, groups, roles."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import select

from ringfence.connector.records import NoticedLabel, StoredPrediction
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import ChainSeal
from ringfence.connector.store.rows import PREDICTION, prediction_from_row
from ringfence.connector.store.tables import audit, grouping, label, member, prediction


def find_prediction(queries: ProjectQueries, keys: Sequence[str]) -> StoredPrediction | None:
    """Return the prediction of the first of `keys` that was evaluated; None where none was."""
    query = select(*PREDICTION).where(
        prediction.c.project == queries.project, prediction.c.node_key.in_(keys)
    )
    return next(iter(queries.records(query.limit(1), prediction_from_row)), None)


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
    """Return the sets of those nodes that were evaluated, by key."""
    query = select(prediction.c.node_key, prediction.c.classes).where(
        prediction.c.project == queries.project, prediction.c.node_key.in_(typed_keys)
    )
    return {row["node_key"]: tuple(json.loads(row["classes"])) for row in queries.rows(query)}


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
