"""The audit sample as rows for people, CSV files and `--json`: please find out these classes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.sample import SampledNode, SampleFilter, read_sample
from ringfence.connector.times import format_time
from ringfence.jobs.views.tables.model import Cells, csv_cell
from ringfence.jobs.worklist.request import filter_of

SAMPLE_COLUMNS = ("node", "run", "decided", "known_class", "state", "by")
SAMPLE_NAMES = ("known", "state", "run")
"""The filters that the sample has."""


def sample_filter(given: Mapping[str, str]) -> SampleFilter:
    """Return the filter of some parameters; empty ones are ignored.

    >>> sample_filter({"known": "any", "run": "3", "after": "2 s:a b"}).after
    (2, 's:a b')
    """
    wanted = filter_of({name: given.get(name, "") for name in SAMPLE_NAMES})
    return SampleFilter(wanted.known, wanted.state, wanted.run, _place(given.get("after", "")))


def sample_row(node: SampledNode) -> Cells:
    """Return a node's values by column; nothing of its set, which a person should not know."""
    values = (
        node.key,
        node.seq,
        format_time(node.decided_ns),
        node.label,
        node.state,
        node.who,
    )
    return dict(zip(SAMPLE_COLUMNS, values, strict=True))


def sample_csv(queries: ProjectQueries, wanted: SampleFilter) -> Iterator[str]:
    """Yield the whole sample as lines of CSV; text that a spreadsheet would run is escaped."""
    yield _line(list(SAMPLE_COLUMNS))
    for node in read_sample(queries, wanted, rows=None):
        yield _line([csv_cell(value) for value in sample_row(node).values()])


def _place(text: str) -> tuple[int, str] | None:
    if not text.strip():
        return None
    seq, _, key = text.partition(" ")
    if not seq.isdecimal() or len(seq) > 18:
        raise ConfigError(found=f"after is {text!r}", needed="a place in the list")
    return int(seq), key.replace("\x00", "")


def _line(values: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(values)
    return out.getvalue()
