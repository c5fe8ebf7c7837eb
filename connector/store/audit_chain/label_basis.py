"""The known classes of evaluated nodes, compared with the chain inside a snapshot.

Every label row is under a digest of its block, and the columns beside a prediction have to be those
of its newest label row: a run joins nodes by them, an audit counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Subquery,
    and_,
    func,
    or_,
    select,
)

from ringfence.connector.records import NoticedLabel
from ringfence.connector.store.audit_chain.block_digests import digest_labels
from ringfence.connector.store.audit_chain.sealed_entries import Body
from ringfence.connector.store.labels import label_rows_digest, labels_digest
from ringfence.connector.store.tables import label, prediction


def find_label_differences(
    connection: Connection, project: str, sealed: Sequence[Body], counted: bool
) -> Iterator[str]:
    """Yield differences in label rows and in the predictions' columns that follow from them.

    Args:
        connection: inside the snapshot.
        project: its name.
        sealed: bodies of the entries `classes`.
        counted: whether the columns count that say whether sets held the class.
    """
    recorded: dict[int, list[Body]] = {}
    for body in sealed:
        recorded.setdefault(int(body["noticed_ns"]), []).append(body)
    stored = digest_labels(connection, project)
    for noticed_ns in sorted({*stored, *recorded}):
        block, bodies = stored.get(noticed_ns), recorded.get(noticed_ns, [])
        nodes = sum(body["nodes"] for body in bodies)
        if block is None or block.rows != nodes:
            rows = 0 if block is None else block.rows
            yield f"label noticed at {noticed_ns}: {rows} rows, but {nodes} were recorded"
        elif len(bodies) == 1 and bodies[0].get("rows") != block.digest:
            yield from _block_differences(connection, project, noticed_ns, bodies[0])
    yield from _known_differences(connection, project, counted)


def _block_differences(
    connection: Connection, project: str, noticed_ns: int, body: Body
) -> Iterator[str]:
    """Compare a block by Python's texts; entries of older versions seal keys and classes."""
    query = select(label).where(label.c.project == project)
    rows = connection.execute(query.where(label.c.noticed_ns == noticed_ns))
    labels = [NoticedLabel(**row._asdict()) for row in rows]
    if labels_digest(labels) != body["classes"] or (
        "rows" in body and label_rows_digest(labels) != body["rows"]
    ):
        yield f"label noticed at {noticed_ns}: the rows are not those that were recorded"


def _known_differences(connection: Connection, project: str, counted: bool) -> Iterator[str]:
    """Compare the class in each prediction's row with its label rows."""
    known, of = prediction.c, label.c
    marked = or_(*(known[name].is_not(None) for name in _compared(counted)))
    beside = _count(connection, select(func.count()).where(known.project == project, marked))
    rows = _count(connection, select(func.count()).where(of.project == project))
    agreeing = _agreeing(label, of.noticed_ns, project, counted)
    if (rows, rows) == (beside, _count(connection, agreeing)):
        return  # every label row is its node's only one, and agrees
    newest = _newest_labels(project)
    nodes = _count(connection, select(func.count()).select_from(newest))
    agreeing = _agreeing(newest, newest.c.first_ns, project, counted)
    if (nodes, nodes) != (beside, _count(connection, agreeing)):
        columns = ", ".join((*_compared(counted), "labelled_ns"))
        yield f"prediction: {columns} of some nodes are not as their label rows say"


def _agreeing(
    labels: FromClause, first_ns: ColumnElement[Any], project: str, counted: bool
) -> Select[Any]:
    """Count the predictions whose columns are those of their row among `labels`."""
    known, of = prediction.c, labels.c
    same = [known[name] == of[name] for name in _compared(counted)]
    node = and_(known.project == of.project, known.node_key == of.node_key)
    query = select(func.count()).select_from(labels.join(prediction, node))
    return query.where(of.project == project, known.labelled_ns == first_ns, *same)


def _newest_labels(project: str) -> Subquery:
    """The newest label row of each node, with the time of its first one."""
    of = label.c
    times = (
        select(of.node_key, func.max(of.noticed_ns).label("last"),
               func.min(of.noticed_ns).label("first_ns"))
        .where(of.project == project).group_by(of.node_key).subquery()
    )  # fmt: skip
    newest = and_(of.node_key == times.c.node_key, of.noticed_ns == times.c.last)
    query = select(label, times.c.first_ns).join(times, newest)
    return query.where(of.project == project).subquery()


def _compared(counted: bool) -> tuple[str, ...]:
    """Columns of a prediction's row that follow from its newest label row."""
    return ("label", "covered", "covered_naive", "unseen") if counted else ("label",)


def _count(connection: Connection, query: Any) -> int:
    return int(connection.execute(query).scalar_one())
