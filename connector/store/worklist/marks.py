"""Marks: who claimed a node of the worklist, noted something about it, or is done with it.

Who is done with a node may say what came out: its *outcome*, about a class. A mark needs no lease:
a run may hold it for minutes while a person waits. Its transaction locks the lease's row, as every
write of a session does first, so that entries of the chain stay in one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from sqlalchemy import Connection, insert, select, update

from ringfence.connector.errors import ConfigError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.keys import decode_key
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.keys import KeySource, current_key
from ringfence.connector.store.blocks import split
from ringfence.connector.store.chain import next_number
from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import lease, mark, model, prediction, run

Action = Literal["claim", "release", "note", "done", "reopen"]
ACTIONS: tuple[Action, ...] = get_args(Action)
Outcome = Literal["confirmed", "false alarm", "undecided"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
UNDECIDED: Outcome = "undecided"
KIND = "marked node"
MAX_NOTE_CHARS = 2_000
MAX_WHO_CHARS = 200
MAX_MARKS = 1_000
"""At once, in one transaction: while it lasts no run is decided and nobody else marks."""


@dataclass(frozen=True, slots=True)
class MarkRequest:
    """What a person wants to do with a node.

    `outcome` belongs to `done`: the node is of the class `about` (*confirmed*), it is not (*false
    alarm*), or nobody can tell (*undecided*). Without `about` it is the class of the node's lists,
    or the only one in its set. `assignee` belongs to `claim`: somebody else who shall look at it.
    """

    node_key: str
    who: str
    action: str
    note: str = ""
    outcome: str | None = None
    about: str | None = None
    assignee: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """What a person did with a node; marks of older versions are *done* without an outcome."""

    n: int
    node_key: str
    at_ns: int
    who: str
    action: Action
    note: str
    outcome: Outcome | None = None
    about: str | None = None
    assignee: str | None = None


def record_mark(
    store: Store,
    project: str,
    source: KeySource,
    node_key: str,
    who: str,
    action: str,
    note: str,
    *,
    outcome: str | None = None,
    about: str | None = None,
    assignee: str | None = None,
) -> Mark:
    """Write a mark and its chain entry in one transaction; refuse what can't be one."""
    asked = MarkRequest(node_key, who, action, note, outcome, about, assignee)
    return record_marks(store, project, source, [asked])[0]


def record_marks(
    store: Store, project: str, source: KeySource, asked: Sequence[MarkRequest]
) -> list[Mark]:
    """Write several marks in one transaction: all of them, or none where one can't be."""
    if not 0 < len(asked) <= MAX_MARKS:
        raise ConfigError(
            found=f"{len(asked):,} nodes to mark at once",
            needed=f"1 to {MAX_MARKS:,}",
            next_step="mark them in several steps",
        )
    for request in asked:
        _check(request)
    with store.transaction() as connection:
        locked = connection.execute(
            update(lease).where(lease.c.project == project).values(project=project)
        )
        evaluated = _find_evaluated(connection, project, asked) if locked.rowcount else {}
        for request in asked:
            if request.node_key not in evaluated:
                raise ConfigError(
                    found=f"no node with the key {request.node_key!r} was evaluated in project "
                    f"{project!r}",
                    needed="the key of a node that has a set",
                    next_step="ringfence worklist",
                )
        known = _known_classes(connection, project)
        complete = [_completed(request, evaluated[request.node_key], known) for request in asked]
        key = current_key(connection, project, source)
        at_ns = store.now_ns(connection)
        return [_write(connection, project, key, request, at_ns) for request in complete]


def read_marks(connection: Connection, project: str, node_key: str | None = None) -> list[Mark]:
    """Return the marks of a project or of one node, oldest first."""
    columns = [mark.c[name] for name in Mark.__dataclass_fields__]
    query = select(*columns).where(mark.c.project == project).order_by(mark.c.n)
    if node_key is not None:
        query = query.where(mark.c.node_key == node_key)
    return [Mark(**row._asdict()) for row in connection.execute(query)]


def outcome_of(text: str) -> str:
    """Return an outcome as the record has it, from what a shell makes easy to type.

    >>> outcome_of("false-alarm"), outcome_of("Confirmed")
    ('false alarm', 'confirmed')
    """
    return text.strip().lower().replace("-", " ").replace("_", " ")


def _write(
    connection: Connection, project: str, key: bytes, asked: MarkRequest, at_ns: int
) -> Mark:
    number = next_number(connection, project, mark, ("mark", "n"))
    made = Mark(number, at_ns=at_ns, **asdict(asked))
    values: JsonObject = asdict(made)
    connection.execute(insert(mark).values(project=project, **values))
    chain.append(connection, project, key, KIND, {"mark": values})
    return made


def _find_evaluated(
    connection: Connection, project: str, asked: Sequence[MarkRequest]
) -> dict[str, tuple[str, ...]]:
    """Return, by key of an evaluated node, the classes that an outcome of it may be about."""
    keys = sorted({it.node_key for it in asked if "\x00" not in it.node_key})
    columns = prediction.c
    listed_by_key: dict[str, tuple[str, ...]] = {}
    for part in split(keys):
        query = (
            select(columns.node_key, columns.classes, columns.lists, run.c.lists.label("of_run"))
            .join(run, (run.c.project == columns.project) & (run.c.seq == columns.seq))
            .where(columns.project == project, columns.node_key.in_(part))
        )
        for row in connection.execute(query):
            listed = () if row.lists is None else _classes_of_lists(row.lists, row.of_run)
            listed_by_key[row.node_key] = listed or tuple(json.loads(row.classes))
    return listed_by_key


def _classes_of_lists(lists: str, of_run: str | None) -> tuple[str, ...]:
    names: Mapping[str, float] = json.loads(lists)
    terms = json.loads(of_run or "[]")
    return tuple(sorted({facts["class_"] for facts in terms if facts["name"] in names}))


def _known_classes(connection: Connection, project: str) -> frozenset[str]:
    query = select(model.c.manifest).where(model.c.project == project)
    manifests = connection.execute(query).scalars()
    return frozenset(name for text in manifests for name in json.loads(text).get("classes", []))


def _completed(asked: MarkRequest, may_be: Sequence[str], known: frozenset[str]) -> MarkRequest:
    """Return a request with the class that its outcome is about; refuse one that has none."""
    if asked.outcome is None:
        return asked
    about = asked.about or (may_be[0] if len(may_be) == 1 else None)
    if about is None and asked.outcome != UNDECIDED:
        node = decode_key(asked.node_key)
        raise ConfigError(
            found=f"the outcome {asked.outcome!r} of node {node!r}, whose lists and set leave open "
            "which class it is about",
            needed=f"a class: {', '.join(may_be or sorted(known))}",
            next_step=f'ringfence mark KEY done --outcome "{asked.outcome}" --class CLASS',
        )
    if about is not None and about not in known:
        raise ConfigError(
            found=f"the class {about!r}, which no model of the project knows",
            needed=f"one of: {', '.join(sorted(known)[:20])}",
        )
    return MarkRequest(
        asked.node_key, asked.who, asked.action, asked.note, asked.outcome, about, None
    )


def _check(asked: MarkRequest) -> None:
    for refusal in _refusals(asked):
        raise refusal


def _refusals(asked: MarkRequest) -> Iterator[ConfigError]:
    if asked.action not in ACTIONS:
        yield ConfigError(found=f"the action {asked.action!r}", needed=" or ".join(ACTIONS))
    if not _is_name(asked.who) or "\x00" in asked.note:
        yield ConfigError(
            found="a name that is empty, too long, or holds a NUL character",
            needed=f"who marks the node, in at most {MAX_WHO_CHARS} characters",
        )
    if len(asked.note) > MAX_NOTE_CHARS:
        yield ConfigError(
            found=f"a note of {len(asked.note):,} characters", needed=f"at most {MAX_NOTE_CHARS:,}"
        )
    if asked.action == "note" and not asked.note.strip():
        yield ConfigError(found="an empty note", needed="some text")
    if asked.assignee is not None and (asked.action != "claim" or not _is_name(asked.assignee)):
        yield ConfigError(
            found=f"an assignee with the action {asked.action!r}, or one without a name",
            needed=f"the action claim, and a name of at most {MAX_WHO_CHARS} characters",
            next_step="ringfence mark KEY claim --assign-to NAME",
        )
    if asked.outcome is None and asked.about is None:
        return
    if asked.outcome not in OUTCOMES:
        yield ConfigError(
            found=f"the outcome {asked.outcome!r}", needed=" or ".join(OUTCOMES),
            next_step="ringfence mark KEY done --outcome confirmed",
        )  # fmt: skip
    if asked.action != "done":
        yield ConfigError(
            found=f"an outcome with the action {asked.action!r}",
            needed="the action done: an outcome ends the work on a node",
            next_step=f'ringfence mark KEY done --outcome "{asked.outcome}"',
        )


def _is_name(text: str) -> bool:
    return bool(text.strip()) and len(text) <= MAX_WHO_CHARS and "\x00" not in text
