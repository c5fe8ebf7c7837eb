"""The nodes of a run in piles: on a list that investigates, on one that clears, and all others.

A node that is on lists of both kinds is shown among those to investigate; it stays on both lists,
since taking it off one would change that list's share of wrong nodes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import decode_key
from ringfence.connector.list_terms import ListFacts
from ringfence.connector.records import StoredPrediction
from ringfence.connector.store import predictions
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.worklist.listed_nodes import ListedRun, read_listed_runs
from ringfence.jobs.views.tables.model import csv_cell

OPEN = "open"
KINDS = ("investigate", "clear", OPEN)
COLUMNS = ("pile", "list", "node", "share", "set", "known_class", "run")
ROWS_PER_BLOCK = 5_000


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
    """The piles of a run, and the sentence of each of its lists."""

    run: ListedRun
    nodes: tuple[TriageNode, ...]

    def count(self, pile: str) -> int:
        """Return how many nodes a pile holds."""
        return sum(node.pile == pile for node in self.nodes)

    @property
    def on_both(self) -> int:
        """How many of those to investigate a list that clears holds too."""
        return sum(node.on_both for node in self.nodes)

    def as_json(self) -> dict[str, Any]:
        """Return the values of `--json`."""
        return {
            "run": self.run.seq,
            "lists": [facts.as_json() for facts in self.run.lists],
            "on_both": self.on_both,
            "piles": {pile: self.count(pile) for pile in KINDS},
            "nodes": [node.as_row() for node in self.nodes],
        }


def read_triage(queries: ProjectQueries, seq: int | None = None) -> Triage:
    """Return the piles of a run; of the newest run with lists where none is named."""
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
    blocks = predictions.payload(queries.store, queries.project, run.seq, ROWS_PER_BLOCK)
    nodes = [_place(stored, lists) for block in blocks for stored in block if stored.in_graph]
    nodes.sort(key=_order)
    return Triage(run, tuple(nodes))


def triage_csv(nodes: Sequence[TriageNode]) -> Iterator[str]:
    """Yield the piles as lines of CSV; text that a spreadsheet would run is escaped."""
    yield _line(list(COLUMNS))
    for node in nodes:
        yield _line([csv_cell(value) for value in node.as_row().values()])


def _place(stored: StoredPrediction, lists: dict[str, ListFacts]) -> TriageNode:
    pile, name, share, kinds = OPEN, "", None, set[str]()
    for kind in ("clear", "investigate"):
        for list_, value in stored.lists.items():
            if list_ in lists and lists[list_].terms.is_clear == (kind == "clear"):
                pile, name, share = kind, list_, value
                kinds.add(kind)
    key, label = stored.node_key, stored.label
    return TriageNode(pile, name, key, share, stored.classes, label, stored.seq, len(kinds) == 2)


def _order(node: TriageNode) -> tuple[int, str, float, str]:
    return KINDS.index(node.pile), node.list_, node.share or 0.0, node.node_key


def _line(values: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(values)
    return out.getvalue()
