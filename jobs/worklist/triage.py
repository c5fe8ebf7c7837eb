"""The nodes of a run in piles: on a list that investigates, on one that clears, and all others.

A node that is on lists of both kinds is shown among those to investigate; it stays on both lists,
since taking it off one would change that list's share of wrong nodes.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import decode_key
from ringfence.connector.list_terms import ListFacts
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.worklist.listed_nodes import ListedRun, read_listed_runs
from ringfence.connector.store.worklist.piles import (
    PiledNode,
    count_on_no_list,
    nodes_on_lists,
    nodes_on_no_list,
)
from ringfence.jobs.views.tables.model import csv_cell

OPEN = "open"
KINDS = ("investigate", "clear", OPEN)
COLUMNS = ("pile", "list", "node", "share", "set", "known_class", "run")


@dataclass(frozen=True, slots=True)
class TriageNode:
    """A node of a pile; `share` is the smallest promised share at which it would be listed."""

    pile: str
    list_: str
    node_key: str
    share: float | None
    classes: tuple[str, ...]
    label: str | None
    seq: int
    on_both: bool = False

    def as_row(self) -> dict[str, Any]:
        """Return the node by the names of `COLUMNS`."""
        key = str(decode_key(self.node_key))
        classes = ", ".join(self.classes)
        values = self.pile, self.list_, key, self.share, classes, self.label, self.seq
        return dict(zip(COLUMNS, values, strict=True))


@dataclass(frozen=True, slots=True)
class Triage:
    """The piles of a run, and the sentence of each of its lists.

    `nodes` are those that were asked for, `counts` the nodes of each pile whether asked for or
    not; `on_both` says how many of those to investigate a list that clears holds too.
    """

    run: ListedRun
    nodes: tuple[TriageNode, ...]
    counts: Mapping[str, int]
    on_both: int

    def count(self, pile: str) -> int:
        """Return how many nodes a pile holds."""
        return self.counts.get(pile, 0)

    def as_json(self) -> dict[str, Any]:
        """Return the values of `--json`."""
        return {
            "run": self.run.seq,
            "lists": [facts.as_json() for facts in self.run.lists],
            "on_both": self.on_both,
            "piles": {pile: self.count(pile) for pile in KINDS},
            "nodes": [node.as_row() for node in self.nodes],
        }


def read_triage(
    queries: ProjectQueries,
    seq: int | None = None,
    *,
    pile: str | None = None,
    limit: int | None = None,
) -> Triage:
    """Return the piles of a run; of the newest run with lists where none is named.

    With `pile` and `limit` the nodes of that pile alone, and no more than so many.
    """
    runs = read_listed_runs(queries.store, queries.project)
    chosen = [run for run in runs if seq is None or run.seq == seq]
    if not chosen:
        which = "no run" if seq is None else f"run {seq} is none that"
        raise ConfigError(
            found=f"{which} decided lists",
            needed="a [[lists]] table in the configuration, and a run after it was written",
            next_step="add one to ringfence.toml (docs/how-to.md), then: ringfence score",
        )
    run = chosen[-1]
    lists = {facts.terms.name: facts for facts in run.lists}
    where = queries.store, queries.project, run.seq
    listed = sorted((_place(node, lists, run.seq) for node in nodes_on_lists(*where)), key=_order)
    counts = Counter(node.pile for node in listed)
    counts[OPEN] += count_on_no_list(*where)
    nodes = [node for node in listed if pile in (None, node.pile)][:limit]
    room = None if limit is None else limit - len(nodes)
    if pile in (None, OPEN) and room != 0:
        others = [_place(node, lists, run.seq) for node in nodes_on_no_list(*where, room)]
        nodes += others if room is not None else sorted(others, key=_order)
    return Triage(run, tuple(nodes), counts, sum(node.on_both for node in listed))


def triage_csv(nodes: Sequence[TriageNode]) -> Iterator[str]:
    """Yield the piles as lines of CSV; text that a spreadsheet would run is escaped."""
    yield _line(list(COLUMNS))
    for node in nodes:
        yield _line([csv_cell(value) for value in node.as_row().values()])


def _place(node: PiledNode, lists: Mapping[str, ListFacts], seq: int) -> TriageNode:
    pile, name, share, kinds = OPEN, "", None, set[str]()
    for kind in ("clear", "investigate"):
        for list_, value in node.lists.items():
            if list_ in lists and lists[list_].terms.is_clear == (kind == "clear"):
                pile, name, share = kind, list_, value
                kinds.add(kind)
    key, on_both = node.node_key, len(kinds) == 2
    return TriageNode(pile, name, key, share, node.classes, node.label, seq, on_both)


def _order(node: TriageNode) -> tuple[int, str, float, str]:
    return KINDS.index(node.pile), node.list_, node.share or 0.0, node.node_key


def _line(values: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(values)
    return out.getvalue()
