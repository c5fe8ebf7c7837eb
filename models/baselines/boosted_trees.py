"""Histogram-boosted trees of scikit-learn on a table, within a budget, and the largest class.

scikit-learn is imported when trees are fitted, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Table = NDArray[np.float32]
Ints = NDArray[np.int64]

MAX_COLUMNS = 256
MAX_CELLS = 10_000_000
"""Rows x columns x classes that are fitted: some seconds; beyond it rows are left out evenly."""

MAX_TREES, FEWEST_ROUNDS, MOST_ROUNDS = 2_000, 20, 100
STOPPING_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Fitted:
    """Probabilities [wanted, classes], and what was left out to stay within the budget."""

    chances: Floats
    notes: tuple[str, ...] = ()


def largest_class(truth: Ints, classes: int, wanted: int) -> Floats:
    """Say of every node what shares the classes have [wanted, classes].

    >>> largest_class(np.array([0, 0, 1, 0]), 2, 1).tolist()
    [[0.75, 0.25]]
    """
    shares = np.bincount(truth, minlength=classes) / len(truth)
    return np.tile(shares, (wanted, 1))


def tree_chances(seen: Table, truth: Ints, wanted: Table, classes: int, seed: int = 0) -> Fitted:
    """Fit trees to the rows `seen` [n, d] of known class, and ask them of the rows `wanted`.

    Rounds stop where a tenth of the rows, which scikit-learn sets aside, gets no better. A missing
    value (NaN) is a value of its own.
    """
    there, places = np.unique(truth, return_inverse=True)
    if len(there) < 2 or seen.shape[1] == 0:
        return Fitted(largest_class(truth, classes, len(wanted)))
    columns, notes = choose_columns(seen, places)
    rows = np.arange(len(seen))
    most = max(1_000, MAX_CELLS // (len(columns) * len(there)))
    if len(rows) > most:
        rows = np.linspace(0, len(rows) - 1, most).astype(np.int64)
        notes += (f"trees were fitted to {most:,} of {len(seen):,} nodes",)
        there, places = np.unique(truth[rows], return_inverse=True)
    chances = _fit(seen[np.ix_(rows, columns)], places, wanted[:, columns], len(there), seed)
    out = np.zeros((len(wanted), classes))
    out[:, there] = chances
    return Fitted(out, notes)


def choose_columns(table: Table, truth: Ints) -> tuple[Ints, tuple[str, ...]]:
    """Return the columns to fit: all, or those whose means differ most between classes."""
    if table.shape[1] <= MAX_COLUMNS:
        return np.arange(table.shape[1]), ()
    filled = np.nan_to_num(table.astype(np.float64))
    mean, total = filled.mean(axis=0), filled.var(axis=0) * len(filled)
    between = np.zeros(table.shape[1])
    for one in np.unique(truth):
        own = filled[truth == one]
        between += len(own) * (own.mean(axis=0) - mean) ** 2
    share = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    chosen = np.sort(np.argsort(-share, kind="stable")[:MAX_COLUMNS])
    note = f"trees were fitted to the {MAX_COLUMNS} of {table.shape[1]:,} columns that tell most"
    return chosen, (note,)


def _fit(seen: Table, truth: Ints, wanted: Table, classes: int, seed: int) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier

    fewest = int(np.bincount(truth).min())
    stops = fewest >= 2 and len(truth) * STOPPING_SHARE >= classes
    rounds = max(FEWEST_ROUNDS, min(MOST_ROUNDS, MAX_TREES // classes))
    model = HistGradientBoostingClassifier(
        max_iter=rounds,
        early_stopping=stops,
        validation_fraction=STOPPING_SHARE,
        random_state=seed,
    )
    lowest = _below(seen)
    fitted = model.fit(_filled(seen, lowest), truth)
    return np.asarray(fitted.predict_proba(_filled(wanted, lowest)), np.float64)


def _below(table: Table) -> Table:
    """Return a number below all of each column [d]: what stands for a missing value.

    scikit-learn takes NaN too, but not a column in which every row that it fits has none.
    """
    finite = np.where(np.isnan(table), np.float32(np.inf), table).min(axis=0)
    known = np.where(np.isfinite(finite), finite, 0).astype(np.float64)
    below = known - np.abs(known) - 1
    return np.maximum(below, np.finfo(np.float32).min).astype(np.float32)


def _filled(table: Table, lowest: Table) -> Table:
    return np.where(np.isnan(table), lowest, table)
