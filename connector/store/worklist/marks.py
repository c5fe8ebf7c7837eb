"""Marks: who claimed a node of the worklist, noted something about it, or is done with it.

A mark needs no lease: a run may hold it for minutes while a person waits. Its transaction locks the
lease's row, as every write of a session does first, so that entries of the chain stay in one line.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, get_args

from sqlalchemy import Connection, insert, select, update

from ringfence.connector.errors import ConfigError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.keys import KeySource, current_key
from ringfence.connector.store.chain import next_number
from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import lease, mark, prediction

Action = Literal["claim", "release", "note", "done", "reopen"]
ACTIONS: tuple[Action, ...] = get_args(Action)
KIND = "marked node"
MAX_NOTE_CHARS = 2_000
MAX_WHO_CHARS = 200


@dataclass(frozen=True, slots=True)
class Mark:
    """What a person did with a node."""

    n: int
    node_key: str
    at_ns: int
    who: str
    action: Action
    note: str


def record_mark(
    store: Store, project: str, source: KeySource, node_key: str, who: str, action: str, note: str
) -> Mark:
    """Write a mark and its chain entry in one transaction; refuse what can't be one."""
    _check(who, action, note)
    with store.transaction() as connection:
        locked = connection.execute(
            update(lease).where(lease.c.project == project).values(project=project)
        )
        can_be = locked.rowcount and "\x00" not in node_key  # no text of PostgreSQL has it
        if not can_be or not _is_evaluated(connection, project, node_key):
            raise ConfigError(
                found=f"no node with the key {node_key!r} was evaluated in project {project!r}",
                needed="the key of a node that has a set",
                next_step="ringfence worklist",
            )
        key = current_key(connection, project, source)
        number = next_number(connection, project, mark, ("mark", "n"))
        at_ns = store.now_ns(connection)
        made = Mark(number, node_key, at_ns, who, action, note)  # type: ignore[arg-type]
        values: JsonObject = asdict(made)
        connection.execute(insert(mark).values(project=project, **values))
        chain.append(connection, project, key, KIND, {"mark": values})
    return made


def read_marks(connection: Connection, project: str, node_key: str | None = None) -> list[Mark]:
    """Return the marks of a project or of one node, oldest first."""
    columns = [mark.c[name] for name in Mark.__dataclass_fields__]
    query = select(*columns).where(mark.c.project == project).order_by(mark.c.n)
    if node_key is not None:
        query = query.where(mark.c.node_key == node_key)
    return [Mark(**row._asdict()) for row in connection.execute(query)]


def _is_evaluated(connection: Connection, project: str, node_key: str) -> bool:
    query = select(prediction.c.seq).where(
        prediction.c.project == project, prediction.c.node_key == node_key
    )
    return connection.execute(query).first() is not None


def _check(who: str, action: str, note: str) -> None:
    if action not in ACTIONS:
        raise ConfigError(found=f"the action {action!r}", needed=" or ".join(ACTIONS))
    if not who.strip() or len(who) > MAX_WHO_CHARS or "\x00" in who + note:
        raise ConfigError(
            found="a name that is empty, too long, or holds a NUL character",
            needed=f"who marks the node, in at most {MAX_WHO_CHARS} characters",
        )
    if len(note) > MAX_NOTE_CHARS:
        raise ConfigError(
            found=f"a note of {len(note):,} characters", needed=f"at most {MAX_NOTE_CHARS:,}"
        )
    if action == "note" and not note.strip():
        raise ConfigError(found="an empty note", needed="some text")
