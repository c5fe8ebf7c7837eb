"""Classes that became known since a prediction, written to its row.

Every class that is noticed stays in the `label` table with its times; a class that changes later
keeps both values. The prediction's own row shows the newest one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    func,
    insert,
    or_,
    select,
    update,
)

from ringfence.connector.json_types import JsonObject, JsonValue
from ringfence.connector.keys import next_record_key
from ringfence.connector.records import KnownClass, Label, NoticedLabel
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.key_salt import FIELD as SALTED
from ringfence.connector.store.audit_chain.key_salt import current_salt, salted_facts
from ringfence.connector.store.blocks import read_blocks, split
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.retention.kept_detail import (
    BEYOND_EXCLUSION,
    in_naive_set,
    p_values_of,
    scored_best,
)
from ringfence.connector.store.shadow.sets import cover_shadow_sets
from ringfence.connector.store.tables import further_set, label, prediction, run
from ringfence.connector.store.worklist.entries import mark_known
from ringfence.connector.store.writer import Writer


@dataclass(frozen=True, slots=True)
class OpenPrediction:
    """A prediction whose class may be news, with the terms of its run.

    `classes`, `scores`, `p_values`, `alphas` and `levels` stay JSON text until `check_label` needs
    them: an audit reads every prediction without a class, and few have news.
    """

    node_key: str
    classes: str
    scores: str
    label: str | None
    threshold_naive: float | None
    model: str
    p_values: str = "[]"
    alphas: str | None = None
    levels: str | None = None
    created_ns: int | None = None
    in_graph: bool = True


@dataclass(frozen=True, slots=True)
class LabelColumns:
    """Classes of evaluated nodes, as columns: keys, names, when each was first noticed, and the
    number of the run that evaluated the node.
    """

    node_keys: list[str]
    labels: list[str]
    noticed_ns: list[int]
    evaluated_in: list[int]


def pending(
    store: Store, project: str, rows: int, again_since_ns: int | None = None
) -> Iterator[list[OpenPrediction]]:
    """Yield predictions whose class isn't known yet, in blocks, by key.

    With `again_since_ns` also those whose class was first noticed after it: it may have changed.
    """
    open_: ColumnElement[bool] = prediction.c.labelled_ns.is_(None)
    if again_since_ns is not None:
        open_ = or_(open_, prediction.c.labelled_ns > again_since_ns)
    query = _open_predictions().where(prediction.c.project == project, open_)
    for block in read_blocks(store, query, prediction.c.node_key, rows):
        yield [OpenPrediction(*tuple(row)) for row in block]


def predictions_of(store: Store, project: str, keys: Sequence[str]) -> list[OpenPrediction]:
    """Return the predictions of all nodes that had one of the typed `keys`, evaluated or not."""
    query = _open_predictions().where(prediction.c.project == project)
    evaluated: list[OpenPrediction] = []
    with store.reading() as connection:
        while keys:
            level: list[OpenPrediction] = []
            for part in split(keys):
                rows = connection.execute(query.where(prediction.c.node_key.in_(part)))
                level += [OpenPrediction(*tuple(row)) for row in rows]
            evaluated += level
            keys = [next_record_key(known.node_key) for known in level]
    return evaluated


def check_label(evaluated: OpenPrediction, known: KnownClass, classes: Sequence[str]) -> Label:
    """Say whether a prediction's set and its naive set hold the class.

    `classes` are the model's, in the order of the scores. A class that the model has never seen is
    missed by both sets.

    >>> evaluated = OpenPrediction("i:7", '["b"]', "[-0.9, -0.2]", None, -0.5, "model 1")
    >>> check_label(evaluated, KnownClass("b"), ("a", "b")).covered
    True
    >>> check_label(evaluated, KnownClass("c"), ("a", "b")).unseen
    True
    """
    naive, seen = False, known.class_ in classes
    if seen:
        place = list(classes).index(known.class_)
        naive = in_naive_set(evaluated.scores, place, evaluated.threshold_naive)
    covered = known.class_ in json.loads(evaluated.classes)
    further = further_coverage(evaluated, known.class_, classes)
    return Label(
        evaluated.node_key, known.class_, covered, naive, not seen, known.happened_ns, further
    )


def further_coverage(
    evaluated: OpenPrediction, class_: str, classes: Sequence[str]
) -> tuple[tuple[float, bool], ...]:
    """Say for each alpha after the first whether the set at that alpha holds `class_`.

    A set without a class above its level holds the best-scoring one where `nonempty` says so,
    which the run's levels have on record.

    >>> levels = '{"used": [0.1, 0.3], "nonempty": false}'
    >>> texts = '["b"]', "[-0.9, -0.2]", None, None, "model 1", "[0.2, 0.6]", "[0.1, 0.3]", levels
    >>> further_coverage(OpenPrediction("i:7", *texts), "a", ("a", "b"))
    ((0.3, False),)
    """
    alphas = json.loads(evaluated.alphas) if evaluated.alphas else []
    if len(alphas) < 2:
        return ()
    if class_ not in classes:
        return tuple((alpha, False) for alpha in alphas[1:])
    levels = json.loads(evaluated.levels or "{}")
    p_values, place = p_values_of(evaluated.p_values, BEYOND_EXCLUSION), list(classes).index(class_)
    best = scored_best(evaluated.scores, place)
    held = []
    for alpha, used in zip(alphas[1:], levels["used"][1:], strict=True):
        above = [
            p > (used[name] if isinstance(used, dict) else used)
            for name, p in zip(classes, p_values, strict=True)
        ]
        filled = levels["nonempty"] and not any(above) and best
        held.append((alpha, above[place] or filled))
    return tuple(held)


def record_labels(writer: Writer, labels: Sequence[Label]) -> None:
    """Write classes to the rows of their predictions and to the list of all that was noticed."""
    if not labels:
        return
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = _later_than_all(connection, project, writer.begin(connection))
        _update_predictions(connection, project, now, labels)
        _update_further_sets(connection, project, labels)
        mark_known(connection, project, [noticed.node_key for noticed in labels])
        cover_shadow_sets(connection, project, labels)
        connection.execute(
            insert(label),
            [
                {
                    "project": project,
                    "node_key": noticed.node_key,
                    "noticed_ns": now,
                    "label": noticed.label,
                    "happened_ns": noticed.happened_ns,
                    "covered": noticed.covered,
                    "covered_naive": noticed.covered_naive,
                    "unseen": noticed.unseen,
                }
                for noticed in labels
            ],
        )
        facts: JsonObject = {
            "classes": labels_digest(labels),
            "rows": label_rows_digest(labels),
            SALTED: salted_facts(
                current_salt(connection, project),
                "rows",
                [(noticed.node_key, _sealed_columns(noticed)) for noticed in labels],
            ),
            "nodes": len(labels),
            "noticed_ns": now,
        }
        chain.append(connection, project, writer.key, "classes", facts)


def labels_digest(labels: Sequence[Label]) -> str:
    """Return one hash over keys and classes, in the order of the keys."""
    digest = hashlib.sha256()
    for noticed in sorted(labels, key=lambda noticed: noticed.node_key):
        digest.update(dumps([noticed.node_key, noticed.label]).encode())
    return digest.hexdigest()


def label_rows_digest(labels: Sequence[Label]) -> str:
    """Return one hash over all values of label rows, in the order of the keys."""
    digest = hashlib.sha256()
    for noticed in sorted(labels, key=lambda noticed: noticed.node_key):
        digest.update(dumps([noticed.node_key, *_sealed_columns(noticed)]).encode())
    return digest.hexdigest()


def _sealed_columns(noticed: Label) -> list[JsonValue]:
    return [
        noticed.label, noticed.happened_ns, noticed.covered, noticed.covered_naive, noticed.unseen,
    ]  # fmt: skip


def history(store: Store, project: str, node_key: str) -> list[NoticedLabel]:
    """Return every class of a node that was noticed, oldest first."""
    query = (
        select(label)
        .where(label.c.project == project, label.c.node_key == node_key)
        .order_by(label.c.noticed_ns)
    )
    with store.reading() as connection:
        return [NoticedLabel(**row._asdict()) for row in connection.execute(query)]


def labels_of_model(store: Store, project: str, model: str) -> LabelColumns:
    """Return the known classes of the nodes that a model version evaluated, by key."""
    query = (
        select(
            prediction.c.node_key, prediction.c.label, prediction.c.labelled_ns, prediction.c.seq
        )
        .join(run, (run.c.project == prediction.c.project) & (run.c.seq == prediction.c.seq))
        .where(
            prediction.c.project == project,
            prediction.c.labelled_ns.is_not(None),
            run.c.model == model,
        )
        .order_by(prediction.c.node_key)
    )
    with store.reading() as connection:
        rows = connection.execute(query).all()
    return LabelColumns(
        [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], [r[3] for r in rows]
    )


def has_labels_since(store: Store, project: str, model: str, since_ns: int) -> bool:
    """Whether a class became known after a time, of a node that a model version evaluated."""
    query = (
        select(prediction.c.node_key)
        .join(run, (run.c.project == prediction.c.project) & (run.c.seq == prediction.c.seq))
        .where(
            prediction.c.project == project,
            prediction.c.labelled_ns > since_ns,
            run.c.model == model,
        )
    )
    with store.reading() as connection:
        return connection.execute(query.limit(1)).first() is not None


def newest_noticed_ns(connection: Connection, project: str) -> int | None:
    """Return when a class was noticed last."""
    query = select(func.max(label.c.noticed_ns)).where(label.c.project == project)
    return connection.execute(query).scalar()


def _later_than_all(connection: Connection, project: str, now: int) -> int:
    """Return a time that no label has yet: a chain entry identifies its rows by it.

    SQLite's clock has milliseconds, in which two blocks of one audit can be written.
    """
    newest = newest_noticed_ns(connection, project)
    return now if newest is None else max(now, newest + 1)


def _open_predictions() -> Select[Any]:
    return select(
        prediction.c.node_key,
        prediction.c.classes,
        prediction.c.scores,
        prediction.c.label,
        run.c.threshold_naive,
        run.c.model,
        prediction.c.p_values,
        run.c.alphas,
        run.c.levels,
        prediction.c.created_ns,
        prediction.c.in_graph,
    ).join(run, (run.c.project == prediction.c.project) & (run.c.seq == prediction.c.seq))


def _update_predictions(
    connection: Connection, project: str, now: int, labels: Sequence[Label]
) -> None:
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
    connection.execute(
        statement,
        [
            {
                "of": noticed.node_key,
                "now_known": noticed.label,
                "now": now,
                "hit": noticed.covered,
                "naive_hit": noticed.covered_naive,
                "never_seen": noticed.unseen,
            }
            for noticed in labels
        ],
    )


def _update_further_sets(connection: Connection, project: str, labels: Sequence[Label]) -> None:
    values = [
        {"of": noticed.node_key, "at": alpha, "hit": covered}
        for noticed in labels
        for alpha, covered in noticed.further
    ]
    if not values:
        return
    statement = update(further_set).where(
        further_set.c.project == project,
        further_set.c.node_key == bindparam("of"),
        further_set.c.alpha == bindparam("at"),
    )
    connection.execute(statement.values(covered=bindparam("hit")), values)
