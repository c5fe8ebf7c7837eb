"""The model version in use, and every change of it: promoted, rolled back, by whom and why.

A state follows from the rows and is stored nowhere: the newest row names the active version, every
other version with a row is retired, and one without a row is a candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from sqlalchemy import Connection, insert, select

from ringfence.connector import fault_points
from ringfence.connector.json_types import JsonObject
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.actor import current_actor
from ringfence.connector.store.chain import next_number
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.lifecycle.tables import activation
from ringfence.connector.store.shadow.consulted import insert_consulted
from ringfence.connector.store.tables import model
from ringfence.connector.store.writer import Writer

How = Literal["first", "promoted", "rolled back", "migrated"]
State = Literal["candidate", "active", "retired"]

KIND = "activated"
"""Kind of the chain's entries about these rows; a training that takes its model into use says so in
its own entry, and nothing else."""

SEALED_MARK = '"activation":{'
"""What the body of every entry about these rows has; no text inside a body can look like it."""

FIRST_REASON = "the first model of the project"
MIGRATED_REASON = "in use when it was trained, before models had states"


@dataclass(frozen=True, slots=True)
class Activation:
    """One change of the version in use, as SQL holds it; `actor` is JSON text."""

    n: int
    at_ns: int
    version: str
    was: str | None
    how: str
    reason: str
    actor: str


def read_activations(connection: Connection, project: str) -> list[Activation]:
    """Return every change of the version in use, oldest first."""
    columns = [activation.c[name] for name in Activation.__dataclass_fields__]
    query = select(*columns).where(activation.c.project == project).order_by(activation.c.n)
    return [Activation(*row) for row in connection.execute(query)]


def activations_of(store: Store, project: str) -> list[Activation]:
    """Return every change of the version in use, oldest first."""
    with store.reading() as connection:
        return read_activations(connection, project)


def active_version(connection: Connection, project: str) -> str | None:
    """Return the version in use; None before there is one."""
    query = (
        select(activation.c.version)
        .where(activation.c.project == project)
        .order_by(activation.c.n.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def states_of(versions: Iterable[str], activations: Sequence[Activation]) -> dict[str, State]:
    """Return the state of each version.

    >>> first = Activation(1, 0, "a", None, "first", "", "{}")
    >>> states_of(["a", "b"], [first])
    {'a': 'active', 'b': 'candidate'}
    >>> states_of(["a", "b"], [first, Activation(2, 0, "b", "a", "promoted", "", "{}")])
    {'a': 'retired', 'b': 'active'}
    """
    active = activations[-1].version if activations else None
    used = {use.version for use in activations}
    return {
        version: "active" if version == active else "retired" if version in used else "candidate"
        for version in versions
    }


def version_before(activations: Sequence[Activation]) -> str | None:
    """Return the version that a rollback goes to; None where the first one is active.

    A rollback takes back the newest promotion that was not taken back yet.

    >>> first = Activation(1, 0, "a", None, "first", "", "{}")
    >>> second = Activation(2, 0, "b", "a", "promoted", "", "{}")
    >>> version_before([first]), version_before([first, second])
    (None, 'a')
    >>> back = Activation(3, 0, "a", "b", "rolled back", "", "{}")
    >>> version_before([first, second, back])
    """
    line: list[str] = []
    for use in activations:
        if use.how == "rolled back":
            line.pop()
        else:
            line.append(use.version)
    return line[-2] if len(line) > 1 else None


def newest_candidate(store: Store, project: str) -> str | None:
    """Return the newest version that was never in use, where it is newer than the active one."""
    with store.reading() as connection:
        active = active_version(connection, project)
        used = select(activation.c.version).where(activation.c.project == project)
        since = select(model.c.trained_ns).where(
            model.c.project == project, model.c.version == active
        )
        query = (
            select(model.c.version)
            .where(
                model.c.project == project,
                model.c.version.not_in(used),
                model.c.trained_ns > since.scalar_subquery(),
            )
            .order_by(model.c.trained_ns.desc(), model.c.version.desc())
            .limit(1)
        )
        return connection.execute(query).scalar()


def record_activation(writer: Writer, version: str, how: How, reason: str) -> Activation:
    """Take a version into use: row and chain entry in a transaction of their own."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        use = insert_activation(connection, project, now, version, how, reason)
        facts: JsonObject = {"activation": asdict(use)}
        if runs := insert_consulted(connection, project, use.n, version):
            facts["consulted"] = [list(run) for run in sorted(runs.items())]
        chain.append(connection, project, writer.key, KIND, facts)
        fault_points.reach("inside promotion")
        return use


def insert_activation(
    connection: Connection, project: str, now: int, version: str, how: How, reason: str
) -> Activation:
    """Write the row inside the caller's transaction, which seals it in an entry of its own."""
    before = read_activations(connection, project)
    was = before[-1].version if before else None
    actor = dumps(current_actor())
    n = next_number(connection, project, activation, ("activation", "n"))
    use = Activation(n, now, version, was, how, reason, actor)
    connection.execute(insert(activation).values(project=project, **asdict(use)))
    return use
