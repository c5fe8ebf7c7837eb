"""All that runs have left in SQL and in the graph, as rows that can be compared."""

import json

from sqlalchemy import select

from ringfence.connector.store import tables

SHOWN = """
MATCH (n)-[e:EVALUATED]->(r:RingfenceRun)
OPTIONAL MATCH (n)-[m:MAY_BE]->(c:RingfenceClass)
WITH n, e, r, c, m ORDER BY c.name
RETURN n.id AS id, r.seq AS seq, e.size AS size, collect([c.name, m.p, m.in_set]) AS classes
ORDER BY id
"""
# when things happened and how long, what a run was configured with, and notes: they name the engine
OTHERWISE = {
    "token", "started_ns", "decided_ns", "applied_ns", "watermark_from_ns", "watermark_to_ns",
    "labelled_ns", "audited_ns", "config", "notes", "timings",
}  # fmt: skip


def rows_of(store, table, *order):
    with store.reading() as connection:
        found = connection.execute(select(table).order_by(*order)).mappings().all()
    return [without_times(one) for one in found]


def without_times(row):
    """A row without what two equal runs have otherwise; `watch` without the time of its mark."""
    kept = {name: row[name] for name in row if name not in OTHERWISE}
    if kept.get("watch"):
        kept["watch"] = {**json.loads(kept["watch"]), "mark_ns": 0}
    return kept


def rows_left(store, graph):
    """Predictions and runs in SQL, and the sets that the graph shows."""
    return (
        rows_of(store, tables.prediction, tables.prediction.c.node_key),
        rows_of(store, tables.run, tables.run.c.seq),
        [row.data() for row in graph.read(SHOWN)],
    )
