"""What an evaluation decided, as the store takes it: facts, thresholds, predictions, notes."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence import __version__
from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.read.sync import SyncResult
from ringfence.connector.prediction_table import FurtherSizes, PredictionTable
from ringfence.connector.records import RunFacts, Threshold
from ringfence.connector.store.runs import finite
from ringfence.jobs.config.settings import ConformalSettings, Settings
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.promise import PromiseTerms, options_of
from ringfence.jobs.scoring.due import DueNodes
from ringfence.jobs.scoring.monitor import score_quantiles
from ringfence.models.conformal.bands import FEWEST_FOR_BANDS, has_bands
from ringfence.models.conformal.evaluate import Evaluation
from ringfence.models.conformal.sets import fill_empty
from ringfence.models.guarantee.law import guarantee


def run_facts(
    settings: Settings,
    terms: PromiseTerms,
    model: SavedModel,
    read: SyncResult,
    result: Evaluation,
    due: DueNodes,
) -> RunFacts:
    """Return what a run knows of itself; notes and the monitor's state come later."""
    alphas = settings.conformal.alphas
    first = [one for one in result.thresholds if one.alpha == alphas[0]]
    levels = {one.level for one in first}
    return RunFacts(
        started_ns=time.time_ns(),
        watermark_from_ns=read.from_ns,
        watermark_to_ns=read.mirror.watermark_ns,
        rule=terms.rule,
        score=terms.score,
        alpha=alphas[0],
        threshold=None if result.threshold is None else finite(result.threshold),
        threshold_node=finite(result.threshold_node),
        threshold_edge=finite(result.threshold_edge),
        threshold_naive=finite(result.threshold_naive),
        n_calibration=result.n_calibration,
        effective_calibration=result.effective_calibration,
        n_evaluated=len(due.rows),
        n_waiting=due.waiting,
        n_already_known=due.already_known,
        n_quarantined=len(read.mirror.rejected),
        n_nodes=read.mirror.node_count,
        n_relationships=read.mirror.edge_count,
        model=model.version,
        config=settings.digest(),
        software=__version__,
        notes=(),
        calibration_scores=score_quantiles(result),
        watch=None,
        options=options_of(settings.conformal, terms),
        alphas=alphas,
        level=levels.pop() if len(levels) == 1 else None,
        lowest_level=float(result.levels.min()),
        n_thresholds=len(first),
        promise=terms.promise,
        calibration_set=terms.calibration_set,
        adapt=terms.adapt,
        levels={
            "used": [_level(levels, model.classes) for levels in result.levels],
            "nonempty": settings.conformal.nonempty,
        },
        weights=terms.weights,
        mean_size_naive=_mean_size(result.scores >= result.threshold_naive),
    )


def _mean_size(sets: NDArray[np.bool_]) -> float:
    """Classes per row, on average."""
    return float(np.count_nonzero(sets) / len(sets))


def _level(by_class: NDArray[np.float64], classes: Sequence[str]) -> float | dict[str, float]:
    """One number where all classes share it, else one per class."""
    values = by_class.tolist()
    return values[0] if len(set(values)) == 1 else dict(zip(classes, values, strict=True))


def thresholds(result: Evaluation, classes: Sequence[str]) -> list[Threshold]:
    """Return the thresholds of every alpha, stratum and class as the store takes them."""
    return [
        Threshold(
            alpha=one.alpha,
            band=one.band,
            class_="" if one.class_index is None else classes[one.class_index],
            level=one.level,
            threshold=finite(one.threshold),
            n_calibration=one.n_calibration,
            effective_calibration=one.effective_calibration,
            n_evaluated=one.n_evaluated,
        )
        for one in result.thresholds
    ]


def predictions(
    mirror: Mirror,
    rows: NDArray[np.int64],
    result: Evaluation,
    degree: NDArray[np.int64],
    classes: tuple[str, ...],
) -> PredictionTable:
    """Return evaluated rows as the store takes them."""
    return PredictionTable(
        mirror.keys.column(rows),
        classes,
        result.sets[0],
        result.p_values,
        result.scores,
        degree,
        result.bands,
    )


def further_sets(
    decided: PredictionTable, result: Evaluation, alphas: Sequence[float]
) -> FurtherSizes:
    """Return the sets at the alphas after the first, by their sizes."""
    return FurtherSizes(decided.keys, tuple(alphas[1:]), result.sets[1:].sum(axis=2))


def fill_empty_sets(result: Evaluation) -> tuple[Evaluation, list[str]]:
    """Put the likeliest class into empty sets; return the result and a note where there were."""
    empty = int((~result.sets[0].any(axis=1)).sum())
    sets = np.stack([np.asarray(fill_empty(one, result.scores)) for one in result.sets])
    note = f"{empty} empty sets were given their likeliest class (nonempty = true)"
    return replace(result, sets=sets), [note] if empty else []


def describe_read(read: SyncResult, absent: int) -> list[str]:
    """Return notes on how the graph was read, and on calibration nodes that are gone."""
    notes = [read.note] if read.note else []
    if read.rebuilt:
        notes.append(f"read the whole graph: {read.rebuilt}")
    if absent:
        notes.append(f"{absent} calibration nodes have left the graph")
    return notes


def describe_calibration(
    result: Evaluation, settings: ConformalSettings, terms: PromiseTerms
) -> list[str]:
    """Return notes on what the calibration nodes are good for."""
    notes, n = [], result.n_calibration
    if settings.drift_half_life_days is not None:
        notes.append(
            f"calibration nodes count half after {settings.drift_half_life_days:g} days "
            f"(worth {result.effective_calibration:.4g} of {n}): the "
            "guarantee loses at most the drift's total-variation bound"
        )
    if terms.rule == "auto" and (terms.promise, terms.weights) == ("marginal", "none"):
        notes.append(_describe_bands(result, min(settings.alphas)))
    elif terms.promise != "marginal":
        notes.append(_describe_parts(result, terms))
    for alpha in settings.alphas if terms.promise == "marginal" else ():
        full = [one for one in result.thresholds if one.alpha == alpha and _is_full(one)]
        if full and len(result.thresholds) == len(settings.alphas):
            notes.append(guarantee(n, alpha).sentence)
        elif full:
            nodes = sum(one.n_evaluated for one in full)
            notes.append(
                f"too few calibration nodes like them at alpha {alpha:g}: {nodes} full sets"
            )
    return notes


def _is_full(one: Any) -> bool:
    return not math.isfinite(one.threshold)


def _describe_bands(result: Evaluation, alpha: float) -> str:
    n, bands = result.n_calibration, len(set(result.bands))
    if not has_bands(n, alpha):
        return (
            f"{n} calibration nodes are too few for bands of degree at alpha {alpha:g} "
            f"({FEWEST_FOR_BANDS / alpha:.0f} are needed): all nodes are compared together (NodeEx)"
        )
    return f"calibrated within bands of degree: {bands} of them hold due nodes"


def _describe_parts(result: Evaluation, terms: PromiseTerms) -> str:
    """Who is compared with whom under a promise per class or group."""
    what = "class" if terms.promise == "class" else f"value of {terms.group}"
    bands = len(set(result.bands))
    parts = f", {bands} bands of degree and groups hold due nodes" if bands > 1 else ""
    if terms.promise == "class":
        parts = f", with {bands} bands of degree that hold due nodes" if bands > 1 else ""
    return f"calibrated among nodes of the same {what} alone{parts}"
