"""Table 1 from the records: beside the paper's figures, and beside what chance alone does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringfence.jobs.reproduce.law import Chance, chance
from ringfence.jobs.reproduce.published import ALPHA, PUBLISHED, Published
from ringfence.jobs.reproduce.scores import ScoreCell, score_cells
from ringfence.jobs.reproduce.sequence_runs import GROUP, Results

__all__ = ["Cell", "Row", "row_of", "rows_of"]

TARGET = 1.0 - ALPHA


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
    for time in ("arrival", "own", "last"):
        for rule in ("node", "naive", "auto"):
            cells |= _cell(result.node, "node", time, rule)
    for time in ("arrival", "last"):
        for rule in ("edge", "edge_exact", "node", "naive", "auto"):
            cells |= _cell(result.edge, "edge", time, rule)
    for rule in ("edge", "node", "naive"):
        cells |= _cell(result.edge, "edge", "stale", rule)
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


def _cell(records: Sequence[dict[str, Any]], kind: str, time: str, rule: str) -> dict[str, Cell]:
    stale = time == "stale"
    records = [record for record in records if rule in record[time]]  # older ones have no bands
    if not records:
        return {}
    covered = [r[time][rule] if stale else r[time][rule]["covered"] for r in records]
    share = np.array(covered) / np.array([r["m"] for r in records])
    group = GROUP[kind]
    whole = [share[i : i + group].mean() for i in range(0, len(share) - group + 1, group)]
    cell = Cell(
        first=_off(share[:group].mean()),
        signed=100.0 * float(share.mean() - TARGET),
        error=100.0 * float(share.std(ddof=1) / np.sqrt(len(share))) if len(share) > 1 else 0.0,
        sequences=len(share),
        groups=tuple(_off(mean) for mean in whole),
        size=None if stale else float(np.mean([r[time][rule]["size"] for r in records])),
    )
    return {f"{kind} {time} {rule}": cell}


def _off(mean: float) -> float:
    return 100.0 * abs(float(mean) - TARGET)
