"""Classes that became known since: asking the graph, and writing them beside the predictions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, select, update

from ringfence.connector.graph import Graph
from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.quoting import quote
from ringfence.connector.rows import UnusableError, class_name
from ringfence.connector.runs import Writer
from ringfence.connector.store import Store
from ringfence.connector.tables import prediction, run


@dataclass(frozen=True, slots=True)
class Label:
    """A class that became known, and whether the set and the naive set held it."""

    node_key: str
    label: str
    covered: bool
    covered_naive: bool


def pending(store: Store, project: str, rows: int) -> Iterator[list[Row[Any]]]:
    """Yield predictions whose class isn't known yet, in blocks, with terms of their run."""
    last = ""
    while True:
        query = (
            select(
                prediction.c.node_key,
                prediction.c.classes,
                prediction.c.scores,
                run.c.threshold_naive,
                run.c.model,
            )
            .join(run, (run.c.project == prediction.c.project) & (run.c.seq == prediction.c.seq))
            .where(
                prediction.c.project == project,
                prediction.c.labelled_ns.is_(None),
                prediction.c.node_key > last,
            )
            .order_by(prediction.c.node_key)
            .limit(rows)
        )
        with store.reading() as connection:
            block: list[Row[Any]] = list(connection.execute(query))
        if not block:
            return
        yield block
        last = block[-1].node_key


def known_classes(graph: Graph, mapping: GraphMapping, keys: Sequence[str]) -> dict[str, str]:
    """Return the classes of those of `keys` that have one now."""
    key, class_ = quote(mapping.key), quote(mapping.class_property)
    rows = graph.read(
        f"UNWIND $keys AS key MATCH (n:{quote(mapping.label)} {{{key}: key}}) "
        f"WHERE n.{class_} IS NOT NULL RETURN n.{key} AS key, n.{class_} AS class",
        keys=[decode_key(one) for one in keys],
    )
    found = {}
    for row in rows:
        with suppress(UnusableError):  # a class that isn't text or a number stays unknown
            found[encode_key(row["key"])] = str(class_name(row["class"]))
    return found


def judge(row: Row[Any], label: str, classes: Sequence[str]) -> Label:
    """Say whether a prediction's set, and the naive one beside it, hold `label`.

    A class that the model has never seen is missed by both.
    """
    naive = False
    if label in classes:
        score = json.loads(row.scores)[list(classes).index(label)]
        naive = row.threshold_naive is None or score >= row.threshold_naive
    return Label(row.node_key, label, label in json.loads(row.classes), naive)


def record_labels(writer: Writer, labels: Sequence[Label]) -> None:
    """Write classes beside their predictions; the first class noticed stays."""
    if not labels:
        return
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        statement = (
            update(prediction)
            .where(
                prediction.c.project == writer.lease.project,
                prediction.c.node_key == bindparam("of"),
                prediction.c.labelled_ns.is_(None),
            )
            .values(
                label=bindparam("now_known"),
                labelled_ns=now,
                covered=bindparam("hit"),
                covered_naive=bindparam("naive_hit"),
            )
        )
        connection.execute(
            statement,
            [
                {
                    "of": one.node_key,
                    "now_known": one.label,
                    "hit": one.covered,
                    "naive_hit": one.covered_naive,
                }
                for one in labels
            ],
        )
