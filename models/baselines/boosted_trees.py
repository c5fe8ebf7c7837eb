"""Histogram-boosted trees of scikit-learn on a table, within a budget, and the largest class.

A table has a node's own columns, those of its neighbours, or both.

scikit-learn is imported when trees are fitted, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

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
    """Return for every node the share of each class among the known ones [wanted, classes].

    >>> largest_class(np.array([0, 0, 1, 0]), 2, 1).tolist()
    [[0.75, 0.25]]
    """
    shares = np.bincount(truth, minlength=classes) / len(truth)
    return np.tile(shares, (wanted, 1))


def tree_chances(seen: Table, truth: Ints, wanted: Table, classes: int, seed: int = 0) -> Fitted:
    """Fit trees to the rows `seen` [n, d] of known class, and predict the rows `wanted`.

    Boosting stops once the loss on a tenth of the rows, set aside by scikit-learn, stops falling. A
    missing value (NaN) is a value of its own.
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


def neighbour_columns(place: Ints, neighbour: Ints, table: Table, rows: int) -> Table:
    """Return the number of neighbours and the means of their columns [rows, 1 + d].

    Args:
        place: the row that each relationship's neighbour belongs to [m].
        neighbour: where the neighbour stands in `table` [m].
        table: columns of the neighbours [k, d].
        rows: how many rows there are; one without neighbours has NaN means.

    >>> table = np.array([[1.0], [3.0]], np.float32)
    >>> neighbour_columns(np.array([0, 0]), np.array([0, 1]), table, 2).tolist()
    [[2.0, 2.0], [0.0, nan]]
    """
    ones = np.ones(len(place), np.float32)
    near = csr_array((ones, (place, neighbour)), shape=(rows, len(table)))
    count = np.bincount(place, minlength=rows).astype(np.float32)
    sums = np.asarray(near @ table, np.float32)
    means = np.full_like(sums, np.nan)
    np.divide(sums, count[:, None], out=means, where=count[:, None] > 0)
    return np.concatenate([count[:, None], means], axis=1)


def neighbours_at(rows: Ints, receiving: Ints, sending: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return the neighbours of some nodes: by edge the node's place in `rows`, and the other end.

    Args:
        rows: the nodes.
        receiving: the ends of all edges [E] that are matched with `rows`.
        sending: the other ends [E].
        nodes: how many nodes the graph has.

    >>> neighbours_at(np.array([2, 0]), np.array([0, 1, 2]), np.array([5, 6, 7]), 8)
    (array([1, 0]), array([5, 7]))
    """
    position = np.full(nodes, -1, np.int64)
    position[rows] = np.arange(len(rows))
    inside = position[receiving] >= 0
    return position[receiving[inside]], np.asarray(sending[inside], np.int64)


def choose_columns(table: Table, truth: Ints) -> tuple[Ints, tuple[str, ...]]:
    """Return the columns to fit: all, or those whose means differ most between classes."""
    if table.shape[1] <= MAX_COLUMNS:
        return np.arange(table.shape[1]), ()
    filled = np.nan_to_num(table.astype(np.float64))
    mean, total = filled.mean(axis=0), filled.var(axis=0) * len(filled)
    between = np.zeros(table.shape[1])
    for class_index in np.unique(truth):
        of_class = filled[truth == class_index]
        between += len(of_class) * (of_class.mean(axis=0) - mean) ** 2
    share = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    chosen = np.sort(np.argsort(-share, kind="stable")[:MAX_COLUMNS])
    note = f"trees were fitted to the {MAX_COLUMNS} of {table.shape[1]:,} columns that tell most"
    return chosen, (note,)


def _fit(seen: Table, truth: Ints, wanted: Table, classes: int, seed: int) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

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
    # Within MAX_CELLS one thread was faster at every size, on the clock too: 2.1 s against 14 for
    # two that spin and 2.8 for two that sleep (60,000 rows, 40 columns, 4 classes, load 3).
    with threadpool_limits(limits=1, user_api="openmp"):
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
