"""Sets derived again from p-values and levels, and the columns of a run that say the same.

A run of a version that kept no levels compared scores with thresholds: its sets are sealed, and not
derived. Where retention removed p-values, those that were above a level are still there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.store.engine import dumps
from ringfence.connector.store.queries import derivation_rows as rows
from ringfence.connector.store.retention.kept_detail import (
    BEYOND_EXCLUSION,
    p_values_of,
    scored_best,
)
from ringfence.jobs.integrity.derivation.findings import MAX_LISTED, Findings
from ringfence.jobs.integrity.derivation.history import DecidedRun, Manifests
from ringfence.jobs.scoring.levels import level_used
from ringfence.models.conformal.sets import sets_at_levels

SUBJECT = "sets"
NO_LEVELS = "of runs whose version kept no levels"
NO_MODEL = "of versions whose classes can't be read"

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def derive_sets(history: Manifests, run: DecidedRun, findings: Findings) -> None:
    """Compare a run's sets at all of its alphas with its p-values and levels."""
    classes, levels = history.classes(run.version), run.levels
    count = int(run.facts["n_evaluated"])
    if "used" not in levels:
        findings.leave(SUBJECT, NO_LEVELS, count)
    elif not classes:
        findings.leave(SUBJECT, NO_MODEL, count)
    else:
        used = levels_at(run, classes)
        problems = [*_column_problems(run, used), *_set_problems(history, run, classes, used)]
        findings.compare(SUBJECT, *problems, count=count)


def levels_at(run: DecidedRun, classes: Sequence[str]) -> Floats:
    """Return what a run compared p-values with [alphas, classes]."""
    return np.array(
        [
            [level_used(run.levels, place, alpha, name) for name in classes]
            for place, alpha in enumerate(run.alphas)
        ]
    )


def _column_problems(run: DecidedRun, used: Floats) -> Iterator[str]:
    alpha, lowest = float(run.facts["alpha"]), run.facts["lowest_level"]
    if alpha != run.alphas[0]:
        yield f"run {run.seq}: alpha is {alpha}, but its alphas begin with {run.alphas[0]}"
    if lowest is not None and float(lowest) != float(used.min()):
        yield f"run {run.seq}: lowest_level is {lowest}, but its levels give {used.min()}"


def _set_problems(
    history: Manifests, run: DecidedRun, classes: Sequence[str], used: Floats
) -> Iterator[str]:
    reader = history.reader
    stored = rows.sets_of_run(reader.connection, reader.project, run.seq)
    if not stored:
        return
    p = _matrix([row.p_values for row in stored])
    if p.shape != (len(stored), len(classes)):
        yield f"run {run.seq}: p_values of its predictions are not of {len(classes)} classes"
        return
    sets = sets_at_levels(p, used)
    if run.levels.get("nonempty"):
        sets = np.stack([_filled(at_alpha, stored) for at_alpha in sets])
    expected = _texts(sets[0], classes)
    wrong = [place for place, text in enumerate(expected) if stored[place].classes != text]
    for place in wrong[:MAX_LISTED]:
        row = stored[place]
        yield (
            f"prediction {row.node_key} (run {run.seq}): classes is {row.classes}, but p_values "
            f"and the run's levels give {expected[place]}"
        )
    if len(wrong) > MAX_LISTED:
        yield f"… and {len(wrong) - MAX_LISTED} more sets of run {run.seq}"
    if len(run.alphas) > 1:
        keys = [row.node_key for row in stored]
        history.keep_further(run, keys, sets[1:], classes)
        yield from _size_problems(history, run, keys, sets)


def _size_problems(
    history: Manifests, run: DecidedRun, keys: Sequence[str], sets: Bools
) -> Iterator[str]:
    """Compare the sizes of the sets at the alphas after the first."""
    reader = history.reader
    sizes = sets.sum(axis=2)
    expected = {
        (key, alpha): size
        for place, alpha in enumerate(run.alphas[1:], start=1)
        for key, size in zip(keys, sizes[place].tolist(), strict=True)
    }
    listed = 0
    for row in rows.further_sizes(reader.connection, reader.project, run.seq):
        if expected.get((row.node_key, row.alpha)) != row.size and listed < MAX_LISTED:
            listed += 1
            yield (
                f"further_set {row.node_key} (run {run.seq}): size at alpha {row.alpha:g} is "
                f"{row.size}, but p_values and the run's levels give "
                f"{expected.get((row.node_key, row.alpha))}"
            )


def _matrix(texts: Sequence[str]) -> Floats:
    """p-values [nodes, classes]; an empty array where rows differ in length."""
    plain = json.loads(f"[{','.join(texts)}]")
    values: list[Any] = [
        p_values_of(text, BEYOND_EXCLUSION) if isinstance(value, dict) else value
        for text, value in zip(texts, plain, strict=True)
    ]
    if len({len(value) for value in values}) != 1:
        return np.empty((0, 0))
    return np.array(values, np.float64)


def _filled(sets: Bools, stored: Sequence[Any]) -> Bools:
    """Put the classes that scored best into empty sets, as a run with `nonempty = true` does."""
    filled = sets.copy()
    for place in np.flatnonzero(~sets.any(axis=1)).tolist():
        scores = stored[place].scores
        filled[place] = [scored_best(scores, class_) for class_ in range(sets.shape[1])]
    return filled


def _texts(sets: Bools, classes: Sequence[str]) -> list[str]:
    """The column `classes` of each row; rows with the same set share one text."""
    patterns, of_row = np.unique(sets, axis=0, return_inverse=True)
    texts = [
        dumps([name for name, inside in zip(classes, pattern, strict=True) if inside])
        for pattern in patterns.tolist()
    ]
    return [texts[place] for place in of_row.reshape(-1).tolist()]
