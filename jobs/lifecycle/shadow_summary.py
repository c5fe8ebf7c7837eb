"""What a candidate's shadow sets show so far, beside the sets in force, from rows audits wrote."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ringfence.connector.store.engine import Store
from ringfence.connector.store.shadow.coverage import ShadowCoverage, shadow_totals
from ringfence.connector.store.shadow.sets import ShadowRun, newest_shadow_runs
from ringfence.models.guarantee.paired import Interval, coverage_difference, mean_difference


@dataclass(frozen=True, slots=True)
class ShadowSummary:
    """A candidate's sets beside those in force, over the same nodes.

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
    coverage_difference: Interval | None
    mean_size: float | None
    active_mean_size: float | None
    size_difference: Interval | None
    last_run: int
    failed: str | None

    def as_json(self) -> dict[str, Any]:
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
        found = f"shadow sets of {self.nodes:,} nodes in {self.runs:,} runs: {sizes}"
        if self.coverage is not None and self.active_coverage is not None:
            found += (
                f"; they cover {100 * self.coverage:.1f} % of {self.known:,} known nodes, those in "
                f"force {100 * self.active_coverage:.1f} %{_reach(self.coverage_difference)}"
            )
        else:
            found += "; no class of these nodes is known yet"
        failed = f"; run {self.last_run} failed: {self.failed}" if self.failed else ""
        return f"{found}{failed}"


def _reach(found: Interval | None) -> str:
    if found is None:
        return ""
    return (
        f" (difference {100 * found.difference:+.1f} points, 95 % of the time between "
        f"{100 * found.low:+.1f} and {100 * found.high:+.1f})"
    )


def read_shadows(store: Store, project: str) -> dict[str, ShadowSummary]:
    """Return what every version did in the shadow of others, by version."""
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
