"""Runs whose shadow sets may have helped to choose a version: they never calibrate it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, insert, select

from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.tables import activation
from ringfence.connector.store.shadow.sets import known_by_run
from ringfence.connector.store.shadow.tables import consulted


def insert_consulted(connection: Connection, project: str, n: int, version: str) -> dict[int, int]:
    """Write which runs activation `n` could look at, inside its transaction; return them.

    Audits count a version's shadow sets until it is taken into use for the first time: what becomes
    known of them later is in no comparison, and may calibrate it.
    """
    before = select(activation.c.n).where(
        activation.c.project == project, activation.c.version == version, activation.c.n < n
    )
    if connection.execute(before.limit(1)).first() is not None:
        return {}
    runs = known_by_run(connection, project, version)
    if runs:
        connection.execute(
            insert(consulted),
            [
                {"project": project, "n": n, "version": version, "seq": seq, "known": known}
                for seq, known in runs.items()
            ],
        )
    return runs


def consulted_runs(store: Store, project: str, version: str) -> frozenset[int]:
    """Return the runs that may have helped to choose a version."""
    query = select(consulted.c.seq).where(
        consulted.c.project == project, consulted.c.version == version
    )
    with store.reading() as connection:
        return frozenset(int(seq) for seq in connection.execute(query).scalars())


def shadowed_runs(store: Store, project: str, version: str) -> frozenset[int]:
    """Return the runs that would be consulted if a candidate were taken into use now."""
    with store.reading() as connection:
        return frozenset(known_by_run(connection, project, version))


def read_consulted(
    connection: Connection, project: str
) -> Mapping[int, Mapping[int, tuple[str, int]]]:
    """Return version and known nodes of the consulted runs, by activation and run."""
    query = select(consulted.c.n, consulted.c.seq, consulted.c.version, consulted.c.known).where(
        consulted.c.project == project
    )
    runs_by_activation: dict[int, dict[int, tuple[str, int]]] = {}
    for row in connection.execute(query):
        runs_by_activation.setdefault(int(row.n), {})[int(row.seq)] = (row.version, int(row.known))
    return runs_by_activation
