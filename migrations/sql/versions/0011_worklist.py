"""The worklist: a row per class in a set, indexed by p-value, and the marks of people.

Sets that were decided before get their rows here, from the classes and p-values of `prediction`.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

BLOCK = 5_000


def upgrade() -> None:
    worklist_entry = op.create_table(
        "worklist_entry",
        sa.Column("project", sa.Text),
        sa.Column("node_key", sa.Text),
        sa.Column("class", sa.Text),
        sa.Column("p", sa.Double, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("degree", sa.BigInteger, nullable=False),
        sa.Column("known", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("project", "node_key", "class"),
    )
    _fill(worklist_entry)
    op.create_index(
        "worklist_entry_by_p",
        "worklist_entry",
        ["project", "class", "known", "p", "node_key", "seq", "size", "degree"],
    )
    op.create_table(
        "mark",
        sa.Column("project", sa.Text),
        sa.Column("n", sa.BigInteger),
        sa.Column("node_key", sa.Text, nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("project", "n"),
        sa.CheckConstraint(
            "action IN ('claim', 'release', 'note', 'done', 'reopen')", name="mark_action"
        ),
    )
    op.create_index("mark_by_node", "mark", ["project", "node_key", "n"])


def _fill(worklist_entry: sa.Table) -> None:
    """Write the rows of older sets, a block of nodes at a time."""
    connection = op.get_bind()
    model = sa.table("model", sa.column("project"), sa.column("version"), sa.column("manifest"))
    names = {
        (row.project, row.version): json.loads(row.manifest).get("classes", [])
        for row in connection.execute(sa.select(model))
    }
    last = ("", "")
    while rows := list(connection.execute(_block(last))):
        made = [new for row in rows for new in _candidates(row, names)]
        if made:
            connection.execute(sa.insert(worklist_entry), made)
        last = rows[-1].project, rows[-1].node_key


def _block(last: tuple[str, str]) -> sa.Select[Any]:
    of_sets = ("project", "node_key", "seq", "classes", "p_values", "degree", "labelled_ns")
    prediction = sa.table("prediction", *(sa.column(name) for name in of_sets))
    run = sa.table("run", sa.column("project"), sa.column("seq"), sa.column("model"))
    key = sa.tuple_(prediction.c.project, prediction.c.node_key)
    same_run = (run.c.project == prediction.c.project) & (run.c.seq == prediction.c.seq)
    return (
        sa.select(*prediction.c, run.c.model)
        .join(run, same_run)
        .where(key > sa.tuple_(*(sa.literal(part, sa.Text) for part in last)))
        .order_by(prediction.c.project, prediction.c.node_key)
        .limit(BLOCK)
    )


def _candidates(row: Any, names: dict[tuple[str, str], list[str]]) -> list[dict[str, Any]]:
    classes = json.loads(row.classes)
    of_model = names.get((row.project, row.model), [])
    p_values = dict(zip(of_model, json.loads(row.p_values), strict=False))
    return [
        {
            "project": row.project, "node_key": row.node_key, "class": name, "p": p_values[name],
            "seq": row.seq, "size": len(classes), "degree": row.degree,
            "known": row.labelled_ns is not None,
        }
        for name in classes
        if name in p_values
    ]  # fmt: skip


def downgrade() -> None:
    op.drop_index("mark_by_node", table_name="mark")
    op.drop_table("mark")
    op.drop_index("worklist_entry_by_p", table_name="worklist_entry")
    op.drop_table("worklist_entry")
