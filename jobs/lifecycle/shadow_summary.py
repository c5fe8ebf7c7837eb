"""What a candidate's shadow sets show so far, against the sets in force, from audited rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ringfence.connector.json_types import JsonObject
from ringfence.connector.store.engine import Store
from ringfence.connector.store.shadow.coverage import ShadowCoverage, shadow_totals
from ringfence.connector.store.shadow.sets import ShadowRun, newest_shadow_runs
from ringfence.models.guarantee.paired_difference import (
    PairedDifference,
    coverage_difference,
    mean_difference,
)


@dataclass(frozen=True, slots=True)
class ShadowSummary:
    """A candidate's sets compared with those in force, over the same nodes.

    Coverages are of the `known` nodes, sizes of all; the differences are candidate minus in force,
    with paired intervals. `last_run` is the newest run that it took part in; `failed` says why that
    one has no sets.
    """

    version: str
    runs: int
    nodes: int
    known: int
    coverage: float | None
    active_coverage: float | None
    coverage_difference: PairedDifference | None
    mean_size: float | None
    active_mean_size: float | None
    size_difference: PairedDifference | None
    last_run: int
    failed: str | None

    def as_json(self) -> JsonObject:
        """Return the values under the keys of `ringfence models --json`."""
        return asdict(self) | {"words": self.words}

    @property
    def words(self) -> str:
        """All of it in one sentence."""
        if self.failed is not None and not self.nodes:
            return f"no shadow sets: run {self.last_run} failed: {self.failed}"
        if not self.nodes:
            return "no audit has counted its shadow sets yet: ringfence audit"
        sizes = f"average size {self.mean_size:.2f}, in force {self.active_mean_size:.2f}"
        sentence = f"shadow sets of {self.nodes:,} nodes in {self.runs:,} runs: {sizes}"
        if self.coverage is not None and self.active_coverage is not None:
            sentence += (
                f"; they cover {100 * self.coverage:.1f} % of {self.known:,} known nodes, those in "
                f"force {100 * self.active_coverage:.1f} %{_reach(self.coverage_difference)}"
            )
        else:
            sentence += "; no class of these nodes is known yet"
        failed = f"; run {self.last_run} failed: {self.failed}" if self.failed else ""
        return f"{sentence}{failed}"


def _reach(interval: PairedDifference | None) -> str:
    if interval is None:
        return ""
    return (
        f" (difference {100 * interval.difference:+.1f} points, 95 % of the time between "
        f"{100 * interval.low:+.1f} and {100 * interval.high:+.1f})"
    )


def read_shadows(store: Store, project: str) -> dict[str, ShadowSummary]:
    """Return the summary of every version that made shadow sets, by version."""
    totals = shadow_totals(store, project)
    return {
        version: _summary(newest, totals.get(version))
        for version, newest in newest_shadow_runs(store, project).items()
    }


def _summary(newest: ShadowRun, total: ShadowCoverage | None) -> ShadowSummary:
    if total is None:
        nothing = (None,) * 6
        return ShadowSummary(newest.version, 0, 0, 0, *nothing, newest.seq, newest.failed)
    n, known = total.evaluated, total.known
    return ShadowSummary(
        version=newest.version,
        runs=total.seq,
        nodes=n,
        known=known,
        coverage=total.covered / known if known else None,
        active_coverage=total.active_covered / known if known else None,
        coverage_difference=coverage_difference(
            known, total.covered, total.active_covered, total.both_covered
        ),
        mean_size=total.size / n,
        active_mean_size=total.active_size / n,
        size_difference=mean_difference(
            n, total.size - total.active_size, total.size_difference_squared
        ),
        last_run=newest.seq,
        failed=newest.failed,
    )
