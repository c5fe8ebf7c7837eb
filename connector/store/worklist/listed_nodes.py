"""Nodes on the lists of a run (`[[lists]]`), marked in SQL and sealed with the run.

A node is put on a list by the transaction that decides its run, once, and never taken off it. The
run's chain entry holds a digest of who is on which list; the lists' terms and counts are a column
of the run, which the same entry seals.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select, update

from ringfence.connector.json_types import JsonObject, JsonValue
from ringfence.connector.list_terms import ListFacts
from ringfence.connector.store.audit_chain.key_salt import salted_facts
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.tables import prediction, run

Listed = Mapping[str, Mapping[str, float]]
"""By node key: the lists that it is on, each with the share at which it would just be listed."""

DIGEST, COUNT = "listed", "listed_nodes"


@dataclass(frozen=True, slots=True)
class ListedNode:
    """A node on a list: its run, the share at which it would just be listed, its known class."""

    node_key: str
    seq: int
    name: str
    share: float
    label: str | None
    labelled_ns: int | None
    in_graph: bool


@dataclass(frozen=True, slots=True)
class ListedRun:
    """The lists of a run, when it was decided, how many nodes it evaluated and by which version."""

    seq: int
    decided_ns: int
    model: str
    evaluated: int
    lists: tuple[ListFacts, ...]


def mark_listed(connection: Connection, project: str, listed: Listed) -> None:
    """Put nodes on their lists inside the transaction that decides their run."""
    statement = (
        update(prediction)
        .where(prediction.c.project == project, prediction.c.node_key == bindparam("key"))
        .values(lists=bindparam("names"))
    )
    for part in split(sorted(listed)):
        rows = [{"key": key, "names": lists_text(listed[key])} for key in part]
        connection.execute(statement, rows)


def lists_text(lists: Mapping[str, float]) -> str:
    """Return a node's lists as its row has them."""
    return dumps(dict(sorted(lists.items())))


def list_facts(listed: Listed, keys: Sequence[str]) -> JsonObject:
    """Return what a run's chain entry holds of its lists; nothing where no node is on one."""
    if not listed:
        return {}
    return {COUNT: len(listed), DIGEST: lists_digest({key: listed.get(key) for key in keys})}


def lists_digest(lists: Mapping[str, Mapping[str, float] | None]) -> str:
    """Return one hash over the lists of all nodes of a run, None on none, in the order of the keys.

    Lists are short: of the listed nodes alone a digest would tell someone who guesses keys who is
    on one. This one tells nobody who does not know all keys of the run.
    """
    digest = hashlib.sha256()
    for key in sorted(lists):
        digest.update(dumps([key, lists[key]]).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def salted_list_facts(listed: Listed, keys: Sequence[str], salt: bytes) -> JsonObject:
    """Return the same with salted keys, for packs that have these; the order of rows is none."""
    if not listed:
        return {}
    rows: list[tuple[str, list[JsonValue]]] = [
        (key, [dict(listed[key]) if key in listed else None]) for key in keys
    ]
    return {DIGEST: salted_facts(salt, DIGEST, rows)[DIGEST]}


def read_listed_runs(store: Store, project: str) -> list[ListedRun]:
    """Return the runs that decided lists, oldest first; empty lists count."""
    with store.reading() as connection:
        return listed_runs(connection, project)


def listed_runs(connection: Connection, project: str) -> list[ListedRun]:
    """Do what `read_listed_runs` does inside the caller's transaction."""
    query = (
        select(run.c.seq, run.c.decided_ns, run.c.model, run.c.n_evaluated, run.c.lists)
        .where(run.c.project == project, run.c.lists.is_not(None))
        .order_by(run.c.seq)
    )
    return [
        ListedRun(
            row.seq,
            row.decided_ns,
            row.model,
            row.n_evaluated,
            tuple(ListFacts.from_json(values) for values in json.loads(row.lists)),
        )
        for row in connection.execute(query)
    ]


def read_listed_nodes(store: Store, project: str) -> list[ListedNode]:
    """Return the nodes on lists, by run and key, a row per list."""
    with store.reading() as connection:
        return list(listed_nodes(connection, project))


def listed_nodes(connection: Connection, project: str) -> Iterator[ListedNode]:
    """Do what `read_listed_nodes` does inside the caller's transaction."""
    columns = prediction.c
    query = (
        select(
            columns.node_key, columns.seq, columns.lists, columns.label, columns.labelled_ns,
            columns.in_graph,
        )
        .where(columns.project == project, columns.lists.is_not(None))
        .order_by(columns.seq, columns.node_key)
    )  # fmt: skip
    for row in connection.execute(query):
        for name, share in json.loads(row.lists).items():
            yield ListedNode(
                row.node_key, row.seq, name, share, row.label, row.labelled_ns, row.in_graph
            )
