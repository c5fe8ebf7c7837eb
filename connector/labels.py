"""Classes that became known since: asking the graph, and writing them beside the predictions.

Every class that is noticed stays in the `label` table with its times; a class that changes later
keeps both values. The prediction's own row shows the newest one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, bindparam, func, insert, or_, select, update

from ringfence.connector import chain
from ringfence.connector.graph import Graph
from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.quoting import quote
from ringfence.connector.rows import UnusableError, class_name
from ringfence.connector.runs import BLOCK, Writer
from ringfence.connector.store import Store, dumps
from ringfence.connector.tables import label, prediction, run
from ringfence.connector.times import as_parameter, ns_expression


@dataclass(frozen=True, slots=True)
class Found:
    """A class as the graph has it now, and when it came to be there, where the graph knows."""

    class_: str
    happened_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A class that became known, and whether the set and the naive set held it."""

    node_key: str
    label: str
    covered: bool
    covered_naive: bool
    unseen: bool
    happened_ns: int | None


def _with_terms() -> Select[Any]:
    return select(
        prediction.c.node_key,
        prediction.c.classes,
        prediction.c.scores,
        prediction.c.label,
        run.c.threshold_naive,
        run.c.model,
    ).join(run, (run.c.project == prediction.c.project) & (run.c.seq == prediction.c.seq))


def pending(
    store: Store, project: str, rows: int, again_since_ns: int | None = None
) -> Iterator[list[Row[Any]]]:
    """Yield predictions whose class isn't known yet, in blocks, with terms of their run.

    With `again_since_ns` also those whose class was first noticed after it: it may have changed.
    """
    open_: ColumnElement[bool] = prediction.c.labelled_ns.is_(None)
    if again_since_ns is not None:
        open_ = or_(open_, prediction.c.labelled_ns > again_since_ns)
    last = ""
    while True:
        query = (
            _with_terms()
            .where(prediction.c.project == project, open_, prediction.c.node_key > last)
            .order_by(prediction.c.node_key)
            .limit(rows)
        )
        with store.reading() as connection:
            block: list[Row[Any]] = list(connection.execute(query))
        if not block:
            return
        yield block
        last = block[-1].node_key


def predictions_of(store: Store, project: str, keys: Sequence[str]) -> list[Row[Any]]:
    """Return the predictions of those of `keys` that were evaluated, with terms of their run."""
    found: list[Row[Any]] = []
    with store.reading() as connection:
        for start in range(0, len(keys), BLOCK):
            part = keys[start : start + BLOCK]
            found += connection.execute(
                _with_terms().where(
                    prediction.c.project == project, prediction.c.node_key.in_(part)
                )
            )
    return found


def known_classes(graph: Graph, mapping: GraphMapping, keys: Sequence[str]) -> dict[str, Found]:
    """Return the classes of those of `keys` that have one now."""
    key, class_ = quote(mapping.key), quote(mapping.class_property)
    rows = graph.read(
        f"UNWIND $keys AS key MATCH (n:{quote(mapping.label)} {{{key}: key}}) "
        f"WHERE n.{class_} IS NOT NULL RETURN n.{key} AS key, n.{class_} AS class, null AS ns",
        keys=[decode_key(one) for one in keys],
    )
    return _found(rows)


def classes_since(
    graph: Graph, mapping: GraphMapping, labelled_at: str, since_ns: int, rows: int
) -> Iterator[dict[str, Found]]:
    """Yield the classes whose `labelled_at` is not before `since_ns`, in blocks."""
    key, class_, time = quote(mapping.key), quote(mapping.class_property), quote(labelled_at)
    query = (
        f"MATCH (n:{quote(mapping.label)}) WHERE n.{time} >= $since AND n.{class_} IS NOT NULL "
        f"RETURN n.{key} AS key, n.{class_} AS class, "
        f"{ns_expression(mapping.time_kind, f'n.{time}')} AS ns"
    )
    block: list[Any] = []
    since = as_parameter(mapping.time_kind, since_ns)
    for row in graph.stream(query, rows, since=since):
        block.append(row)
        if len(block) == rows:
            yield _found(block)
            block = []
    if block:
        yield _found(block)


def _found(rows: Sequence[Any]) -> dict[str, Found]:
    found = {}
    for row in rows:
        with suppress(UnusableError):  # a class that isn't text or a number stays unknown
            found[encode_key(row["key"])] = Found(str(class_name(row["class"])), row["ns"])
    return found


def judge(row: Row[Any], found: Found, classes: Sequence[str]) -> Label:
    """Say whether a prediction's set, and the naive one beside it, hold the class.

    A class that the model has never seen is missed by both.
    """
    naive, seen = False, found.class_ in classes
    if seen:
        score = json.loads(row.scores)[list(classes).index(found.class_)]
        naive = row.threshold_naive is None or score >= row.threshold_naive
    covered = found.class_ in json.loads(row.classes)
    return Label(row.node_key, found.class_, covered, naive, not seen, found.happened_ns)


def record_labels(writer: Writer, labels: Sequence[Label]) -> None:
    """Write classes beside their predictions and into the list of all that was noticed."""
    if not labels:
        return
    project = writer.lease.project
    statement = (
        update(prediction)
        .where(prediction.c.project == project, prediction.c.node_key == bindparam("of"))
        .values(
            label=bindparam("now_known"),
            labelled_ns=func.coalesce(prediction.c.labelled_ns, bindparam("now")),
            covered=bindparam("hit"),
            covered_naive=bindparam("naive_hit"),
            unseen=bindparam("never_seen"),
        )
    )
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        connection.execute(
            statement,
            [
                {
                    "of": one.node_key,
                    "now_known": one.label,
                    "now": now,
                    "hit": one.covered,
                    "naive_hit": one.covered_naive,
                    "never_seen": one.unseen,
                }
                for one in labels
            ],
        )
        connection.execute(
            insert(label),
            [
                {
                    "project": project,
                    "node_key": one.node_key,
                    "noticed_ns": now,
                    "label": one.label,
                    "happened_ns": one.happened_ns,
                    "covered": one.covered,
                    "covered_naive": one.covered_naive,
                    "unseen": one.unseen,
                }
                for one in labels
            ],
        )
        facts = {"classes": labels_digest(labels), "nodes": len(labels), "noticed_ns": now}
        chain.append(connection, project, writer.key, "classes", facts)


def labels_digest(labels: Sequence[Label]) -> str:
    """Return one hash over keys and classes, in the order of the keys."""
    digest = hashlib.sha256()
    for one in sorted(labels, key=lambda one: one.node_key):
        digest.update(dumps([one.node_key, one.label]).encode())
    return digest.hexdigest()


def history(store: Store, project: str, node_key: str) -> list[Row[Any]]:
    """Return every class of a node that was noticed, oldest first."""
    query = (
        select(label)
        .where(label.c.project == project, label.c.node_key == node_key)
        .order_by(label.c.noticed_ns)
    )
    with store.reading() as connection:
        return list(connection.execute(query))
