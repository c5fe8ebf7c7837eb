"""Outcomes that stand: what came out of the work on each node, with its run, lists and class."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from ringfence.connector.keys import decode_key
from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import mark, prediction


@dataclass(frozen=True, slots=True)
class StandingOutcome:
    """The newest end of the work on a node; `outcome` is None for marks of older versions.

    `label` is the class that the graph has by now, `lists` those that the node's run put it on,
    `sampled` whether the run drew it for the audit sample.
    """

    n: int
    node_key: str
    seq: int
    at_ns: int
    who: str
    outcome: str | None
    about: str | None
    note: str
    label: str | None
    lists: tuple[str, ...]
    sampled: bool
    in_graph: bool

    @property
    def key(self) -> str:
        """The key as people write it."""
        return str(decode_key(self.node_key))


def read_outcomes(store: Store, project: str) -> list[StandingOutcome]:
    """Return the outcomes that stand, in the order in which they were recorded."""
    with store.reading() as connection:
        return list(standing_outcomes(connection, project))


def standing_outcomes(connection: Connection, project: str) -> Iterator[StandingOutcome]:
    """Do what `read_outcomes` does inside the caller's transaction."""
    later = mark.alias()
    here, of_node = mark.c, prediction.c
    undone = select(later.c.n).where(
        later.c.project == here.project,
        later.c.node_key == here.node_key,
        later.c.n > here.n,
        later.c.action != "note",
    )
    query = (
        select(
            here.n, here.node_key, of_node.seq, here.at_ns, here.who, here.outcome, here.about,
            here.note, of_node.label, of_node.lists, of_node.sampled, of_node.in_graph,
        )
        .join(
            prediction, (of_node.project == here.project) & (of_node.node_key == here.node_key)
        )
        .where(here.project == project, here.action == "done", ~undone.exists())
        .order_by(here.n)
    )  # fmt: skip
    for row in connection.execute(query):
        names = () if row.lists is None else tuple(sorted(json.loads(row.lists)))
        yield StandingOutcome(**{**row._asdict(), "lists": names, "sampled": bool(row.sampled)})
