"""The audit sample at a glance: its verdict in a sentence, and how many classes are missing."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import StoredCoverage
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.connector.store.queries.sample import SampleCounts, count_sample
from ringfence.connector.store.queries.shown_sample import coverage_bounds, last_sample


@dataclass(frozen=True, slots=True)
class SampleStatus:
    """The row that counts, None before an audit counted one, and the nodes drawn so far."""

    row: StoredCoverage | None
    counts: SampleCounts

    @property
    def verdict(self) -> str:
        """The verdict of the row that counts."""
        return "not enough known yet" if self.row is None else self.row.verdict

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Coverage with the missing nodes of the row counted as missed, and as covered."""
        return None if self.row is None else coverage_bounds(self.row)

    @property
    def sentence(self) -> str:
        """The verdict in words, and how many classes someone should find out."""
        missing = self.counts.unknown
        ask = f"; please find out the class of {missing:,} of its nodes" if missing else ""
        if self.row is None:
            return f"audit sample: {self.counts.nodes:,} nodes drawn, no audit yet{ask}"
        return f"audit sample, runs up to {self.row.seq}: {self.row.words}{ask}"

    def as_json(self) -> JsonObject:
        """Return the values of `--json` and the API."""
        low, high = self.bounds or (None, None)
        return {
            "verdict": self.verdict,
            "words": self.sentence,
            "nodes": self.counts.nodes,
            "unknown": self.counts.unknown,
            "coverage_low": low,
            "coverage_high": high,
            "row": None if self.row is None else as_row(self.row),
        }


def read_sample_status(queries: ProjectQueries) -> SampleStatus | None:
    """Return how the audit sample stands; None where no run drew one."""
    counts = count_sample(queries)
    if not counts.nodes:
        return None
    with queries.store.reading() as connection:
        return SampleStatus(last_sample(connection, queries.project), counts)
