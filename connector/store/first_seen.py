"""When nodes were first seen, for graphs without creation times.

The mirror has the same times, but is a cache; a rebuilt one reads them here, so that delays,
windows and half-lives stay the same. Each time has an entry of the audit chain, with a digest of
nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, select

from ringfence.connector.json_types import JsonObject
from ringfence.connector.store import chain
from ringfence.connector.store.blocks import insert_columns, split
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.tables import audit, first_seen
from ringfence.connector.store.writer import Writer

KIND = "seen"


def record_first_seen(writer: Writer, times: Mapping[str, int]) -> None:
    """Write when a run saw nodes first, and seal it; a node that is on record keeps its time."""
    project = writer.lease.project
    known = find_first_seen(writer.store, project, sorted(times))
    new = {key: time for key, time in times.items() if key not in known}
    if not new:
        return
    with writer.store.transaction() as connection:
        writer.begin(connection)
        for keys in split(sorted(new)):
            columns = {"node_key": keys, "seen_ns": [new[key] for key in keys]}
            insert_columns(connection, first_seen, columns, {"project": project})
        only = sorted(set(new.values())) if _has_entry(connection, project) else None
        for seen_ns, nodes in sorted(nodes_by_time(connection, project, only).items()):
            facts: JsonObject = {
                "seen_ns": seen_ns,
                "nodes": len(nodes),
                "rows": keys_digest(nodes),
            }
            chain.append(connection, project, writer.key, KIND, facts)


def find_first_seen(store: Store, project: str, keys: Sequence[str]) -> dict[str, int]:
    """Return when those of `keys` that are on record were first seen."""
    first_seen_by_key: dict[str, int] = {}
    for part in split(keys):
        query = select(first_seen.c.node_key, first_seen.c.seen_ns).where(
            first_seen.c.project == project, first_seen.c.node_key.in_(part)
        )
        with store.reading() as connection:
            first_seen_by_key.update(
                (row.node_key, row.seen_ns) for row in connection.execute(query)
            )
    return first_seen_by_key


def nodes_by_time(
    connection: Connection, project: str, times: Sequence[int] | None = None
) -> dict[int, list[str]]:
    """Return the keys of the nodes on record by the time at which a run saw them first.

    With `times` only those that were first seen then.
    """
    every = select(first_seen.c.seen_ns, first_seen.c.node_key).where(
        first_seen.c.project == project
    )
    keys_by_time: dict[int, list[str]] = {}
    parts = [every] if times is None else [
        every.where(first_seen.c.seen_ns.in_(part)) for part in split(times)
    ]  # fmt: skip
    for query in parts:
        for seen_ns, key in connection.execute(query):
            keys_by_time.setdefault(seen_ns, []).append(key)
    return keys_by_time


def keys_digest(keys: Iterable[str]) -> str:
    """Return one hash over node keys, in their order."""
    return hashlib.sha256(dumps(sorted(keys)).encode()).hexdigest()


def _has_entry(connection: Connection, project: str) -> bool:
    """Whether any time is sealed; rows of the version that sealed none are sealed with the next."""
    marked = audit.c.body.contains(f'"kind":"{KIND}"')
    query = select(audit.c.n).where(audit.c.project == project, marked).limit(1)
    return connection.execute(query).first() is not None
