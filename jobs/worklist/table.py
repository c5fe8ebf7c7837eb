"""The worklist as rows for people, CSV files, `--json` and pandas frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.models import class_names
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist import WorklistNode, whole_worklist
from ringfence.connector.store.queries.worklist_filter import WorklistFilter
from ringfence.connector.times import format_time
from ringfence.jobs.views.tables.model import Cells, csv_cell

COLUMNS = (
    "node", "class", "p", "size", "degree", "run", "decided", "known_class", "state", "by",
    "outcome", "about", "note", "share",
)  # fmt: skip

NODES_PER_QUESTION = 500
"""Nodes whose properties the graph is asked for at once: what it answers within a page's time."""
ValuesOf = Callable[[Sequence[WorklistNode], Sequence[str]], Mapping[str, Sequence[str | None]]]


def classes_to_choose(queries: ProjectQueries) -> list[str]:
    """Return every class that a model of the project knows, the newest model's first."""
    models = list(class_names(queries.store, queries.project).values())
    return list(dict.fromkeys(name for names in reversed(models) for name in names))


def require_class(queries: ProjectQueries, class_: str) -> None:
    """Refuse a class that no model knows, and name those that one does."""
    known = classes_to_choose(queries)
    if class_ not in known:
        raise ConfigError(
            found=f"no model of project {queries.project!r} knows the class {class_!r}",
            needed=f"one of: {', '.join(known[:20])}" if known else "a trained model",
            next_step="ringfence worklist" if known else "ringfence train",
        )


def row_of(node: WorklistNode, class_: str) -> Cells:
    """Return a node's values by column."""
    values = (
        node.key, class_, node.p, node.size, node.degree, node.seq, format_time(node.decided_ns),
        node.label, node.state, node.who, node.outcome, node.about, node.note,
        node.share,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def csv_lines(
    queries: ProjectQueries,
    wanted: WorklistFilter,
    names: Sequence[str] = (),
    values_of: ValuesOf | None = None,
) -> Iterator[str]:
    """Yield the whole list as lines of CSV; text that a spreadsheet would run is escaped.

    `names` are properties of the graph as further columns, which `values_of` gives by record's key
    for some hundred nodes at a time.
    """
    yield _line([*COLUMNS, *(csv_cell(name) for name in names)])
    nodes = whole_worklist(queries, wanted)
    while block := list(islice(nodes, NODES_PER_QUESTION)):
        told = values_of(block, names) if names and values_of else {}
        for node in block:
            row = [*row_of(node, wanted.class_).values(), *told.get(node.node_key, [])]
            yield _line([csv_cell(value) for value in row])


def _line(values: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(values)
    return out.getvalue()
