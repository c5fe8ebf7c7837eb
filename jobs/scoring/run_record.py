"""The record of a run as the store takes it: its facts, thresholds and further sets, and notes."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ringfence import __version__
from ringfence.connector.neo4j.read.reader import SyncResult
from ringfence.connector.prediction_table import FurtherSizes, PredictionTable
from ringfence.connector.records import RunFacts, Threshold
from ringfence.connector.store.runs import finite_or_none
from ringfence.jobs.config.settings import ConformalSettings
from ringfence.jobs.project.promise import PromiseTerms, options_of
from ringfence.jobs.scoring.due import DueNodes
from ringfence.jobs.scoring.monitor import score_quantiles
from ringfence.jobs.scoring.version_on_graph import VersionOnGraph
from ringfence.models.conformal.bands import FEWEST_FOR_BANDS, has_bands
from ringfence.models.conformal.evaluate import Evaluation
from ringfence.models.conformal.strata import StratumThreshold
from ringfence.models.guarantee.law import guarantee


def run_facts(
    version: VersionOnGraph, read: SyncResult, result: Evaluation, due: DueNodes
) -> RunFacts:
    """Return the run's facts; notes and the monitor's state come later."""
    model, terms, settings = version.model, version.terms, version.workspace.settings
    alphas = settings.conformal.alphas
    first = [threshold for threshold in result.thresholds if threshold.alpha == alphas[0]]
    levels = {threshold.level for threshold in first}
    return RunFacts(
        started_ns=time.time_ns(),
        watermark_from_ns=read.from_ns,
        watermark_to_ns=read.mirror.watermark_ns,
        rule=terms.rule,
        score=terms.score,
        alpha=alphas[0],
        threshold=None if result.threshold is None else finite_or_none(result.threshold),
        threshold_node=finite_or_none(result.threshold_node),
        threshold_edge=finite_or_none(result.threshold_edge),
        threshold_naive=finite_or_none(result.threshold_naive),
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
            "used": used_levels(result.levels, model.classes),
            "nonempty": settings.conformal.nonempty,
        },
        weights=terms.weights,
        mean_size_naive=_mean_size(result.scores >= result.threshold_naive),
    )


def _mean_size(sets: NDArray[np.bool_]) -> float:
    """Classes per row, on average."""
    return float(np.count_nonzero(sets) / len(sets))


def used_levels(
    levels: NDArray[np.float64], classes: Sequence[str]
) -> list[float | dict[str, float]]:
    """Return levels [alphas, classes] as a run's column `levels` has them."""
    return [_level(at_alpha, classes) for at_alpha in levels]


def _level(by_class: NDArray[np.float64], classes: Sequence[str]) -> float | dict[str, float]:
    """One number where all classes share it, else one per class."""
    values = by_class.tolist()
    return values[0] if len(set(values)) == 1 else dict(zip(classes, values, strict=True))


def thresholds(result: Evaluation, classes: Sequence[str]) -> list[Threshold]:
    """Return the thresholds of every alpha, stratum and class as the store takes them."""
    return [
        Threshold(
            alpha=limit.alpha,
            band=limit.band,
            class_="" if limit.class_index is None else classes[limit.class_index],
            level=limit.level,
            threshold=finite_or_none(limit.threshold),
            n_calibration=limit.n_calibration,
            effective_calibration=limit.effective_calibration,
            n_evaluated=limit.n_evaluated,
        )
        for limit in result.thresholds
    ]


def further_sets(
    decided: PredictionTable, result: Evaluation, alphas: Sequence[float]
) -> FurtherSizes:
    """Return the sets at the alphas after the first, by their sizes."""
    return FurtherSizes(decided.keys, tuple(alphas[1:]), result.sets[1:].sum(axis=2))


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
    """Return notes on the calibration nodes: bands, weights, and where there are too few."""
    notes, n = [], result.n_calibration
    if settings.drift_half_life_days is not None:
        notes.append(
            f"calibration nodes count half after {settings.drift_half_life_days:g} days "
            f"(worth {result.effective_calibration:.4g} of {n})"
        )
    if terms.promise_kind.divides_nodes:
        options, bands = terms.promise_options(settings), len(set(result.bands))
        return [*notes, terms.promise_kind.describe_strata(bands, options)]
    if terms.rule_kind.uses_bands and terms.weights != "shift":
        notes.append(_describe_bands(result, min(settings.alphas)))
    for alpha in settings.alphas:
        full = [limit for limit in result.thresholds if limit.alpha == alpha and _is_full(limit)]
        if full and len(result.thresholds) == len(settings.alphas):
            notes.append(guarantee(n, alpha).sentence)
        elif full:
            nodes = sum(limit.n_evaluated for limit in full)
            notes.append(
                f"too few calibration nodes like them at alpha {alpha:g}: {nodes} full sets"
            )
    return notes


def _is_full(limit: StratumThreshold) -> bool:
    return not math.isfinite(limit.threshold)


def _describe_bands(result: Evaluation, alpha: float) -> str:
    n, bands = result.n_calibration, len(set(result.bands))
    if not has_bands(n, alpha):
        return (
            f"{n} calibration nodes are too few for bands of degree at alpha {alpha:g} "
            f"({FEWEST_FOR_BANDS / alpha:.0f} are needed): all nodes are compared together (NodeEx)"
        )
    return f"calibrated within bands of degree: {bands} of them hold due nodes"
