"""Table 1 from the records, with the paper's figures and what chance alone would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.reproduce.protocol import SequenceRecord, Time
from ringfence.jobs.reproduce.published import ALPHA, PUBLISHED, Published
from ringfence.jobs.reproduce.scores import ScoreCell, score_cells
from ringfence.jobs.reproduce.sequence_runs import GROUP, Results
from ringfence.models.conformal.rank import rank
from ringfence.models.guarantee.law import expected_coverage

__all__ = ["Cell", "Chance", "Row", "chance", "row_of", "rows_of"]

TARGET = 1.0 - ALPHA
NODE_TIMES: tuple[Time, ...] = ("arrival", "own", "last")
EDGE_TIMES: tuple[Time, ...] = ("arrival", "last")
DRAWS = 40_000


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of one dataset, in %.

    ``first`` is |mean - 90| of the paper's number of sequences, ``signed`` the mean of all of them
    less 90, ``error`` its standard error, ``groups`` |mean - 90| of each whole group.
    """

    first: float
    signed: float
    error: float
    sequences: int
    groups: tuple[float, ...]
    size: float | None = None


@dataclass(frozen=True, slots=True)
class Chance:
    """The mean coverage of ``sequences`` sequences when all is well, in %.

    ``deviation`` is the expected |mean - (1 - alpha)|, ``low`` and ``high`` the 99 % band of the
    signed deviation.
    """

    sequences: int
    expected: float
    deviation: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """One dataset: cells by "kind time rule", such as "node arrival naive".

    scores: our rule and other scores by "rule score", such as "auto DAPS".
    """

    name: str
    title: str
    published: Published | None
    accuracy: float
    accuracy_spread: float
    splits: int
    n: int
    m: int
    cells: dict[str, Cell]
    chance_first: Chance | None
    chance_all: Chance | None
    scores: dict[str, ScoreCell] = field(default_factory=dict)

    @property
    def inside(self) -> bool | None:
        """Whether NodeEx on node sequences lies within the law's 99 % band, on arrival."""
        if self.chance_all is None:
            return None
        return self.chance_all.low <= self.cells["node arrival node"].signed <= self.chance_all.high


def rows_of(results: Sequence[Results]) -> list[Row]:
    """A row per dataset."""
    return [row_of(result) for result in results]


def row_of(result: Results) -> Row:
    """The row of one dataset."""
    cells: dict[str, Cell] = {}
    for time in NODE_TIMES:
        for rule in ("node", "naive", "auto"):
            cells |= _cell(result.node, "node", time, rule)
    for time in EDGE_TIMES:
        for rule in ("edge", "edge_exact", "node", "naive", "auto"):
            cells |= _cell(result.edge, "edge", time, rule)
    for rule in ("edge", "node", "naive"):
        cells |= _stale_cell(result.edge, rule)
    n, m = (result.node[0]["n"], result.node[0]["m"]) if result.node else (0, 0)
    first = min(len(result.node), GROUP["node"])
    return Row(
        result.name,
        result.title,
        PUBLISHED.get(result.name),
        float(np.mean(result.accuracies)),
        float(np.std(result.accuracies)),
        len(result.accuracies),
        n,
        m,
        cells,
        chance(n, m, ALPHA, first) if result.node else None,
        chance(n, m, ALPHA, len(result.node)) if result.node else None,
        score_cells(result.scores),
    )


def _cell(records: Sequence[SequenceRecord], kind: str, time: Time, rule: str) -> dict[str, Cell]:
    judged = [record for record in records if rule in record[time]]  # older ones have no bands
    counts = [record[time][rule] for record in judged]
    if not counts:
        return {}
    share = np.array([count["covered"] for count in counts]) / _node_counts(judged)
    size = float(np.mean([count["size"] for count in counts]))
    return {f"{kind} {time} {rule}": _measure(share, GROUP[kind], size)}


def _stale_cell(records: Sequence[SequenceRecord], rule: str) -> dict[str, Cell]:
    judged = [record for record in records if rule in record["stale"]]
    if not judged:
        return {}
    share = np.array([record["stale"][rule] for record in judged]) / _node_counts(judged)
    return {f"edge stale {rule}": _measure(share, GROUP["edge"], None)}


def _node_counts(records: Sequence[SequenceRecord]) -> NDArray[np.int64]:
    return np.array([record["m"] for record in records])


def _measure(share: NDArray[np.float64], group: int, size: float | None) -> Cell:
    whole = [share[i : i + group].mean() for i in range(0, len(share) - group + 1, group)]
    return Cell(
        first=_off(share[:group].mean()),
        signed=100.0 * float(share.mean() - TARGET),
        error=100.0 * float(share.std(ddof=1) / np.sqrt(len(share))) if len(share) > 1 else 0.0,
        sequences=len(share),
        groups=tuple(_off(mean) for mean in whole),
        size=size,
    )


def _off(mean: float) -> float:
    return 100.0 * abs(float(mean) - TARGET)


def chance(n: int, m: int, alpha: float, sequences: int, level: float = 0.99) -> Chance:
    """Return the law of the mean of ``sequences`` independent beta-binomial coverages of m nodes.

    Simulated with a fixed seed from Beta(n + 1 - l, l) and the binomial. It is exact where all m
    nodes are evaluated at one time; evaluated on arrival, each step has a threshold of its own, the
    coverages of one sequence are less correlated, and the band is wider than necessary.
    """
    missed = rank(n, alpha)
    rng = np.random.default_rng(20240507)
    share = rng.beta(n + 1 - missed, missed, size=(DRAWS, sequences))
    mean = (rng.binomial(m, share) / m).mean(axis=1) - (1.0 - alpha)
    low, high = np.quantile(mean, [(1 - level) / 2, (1 + level) / 2])
    return Chance(
        sequences,
        100.0 * expected_coverage(n, alpha),
        100.0 * float(np.abs(mean).mean()),
        100.0 * float(low),
        100.0 * float(high),
    )
