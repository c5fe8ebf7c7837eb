"""p-values and prediction sets of some nodes, by a model version on the graph as it is now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ModelError
from ringfence.connector.list_terms import ListTerms
from ringfence.connector.mirror import Mirror, find_recorded, record_keys_at
from ringfence.connector.neo4j.groups import node_groups
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Member
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.scoring.evidence import evidence_of
from ringfence.jobs.scoring.node_lists import NodeList, decide_lists
from ringfence.jobs.scoring.scored_rows import ScoredRows, threads_for
from ringfence.jobs.scoring.shift import columns_to_compare, compare_with_calibration
from ringfence.jobs.scoring.version_on_graph import VersionOnGraph
from ringfence.jobs.telemetry.stopwatch import Stopwatch
from ringfence.models.conformal.evaluate import (
    Evaluation,
    NodeDegrees,
    NodeScores,
    degree_counts,
    evaluate,
    rule_strata,
)
from ringfence.models.conformal.sets import fill_empty
from ringfence.models.conformal.strata import Stratum
from ringfence.models.conformal.weights import drift_weights
from ringfence.models.guarantee.drift_gap import describe_drift_gap
from ringfence.models.inference import neighbour_counts
from ringfence.models.promise.base import NodesToCompare, PropertyValues
from ringfence.models.schema import CLASSIFIED

NO_ROWS = np.empty(0, np.int64)
DAY_NS = 86_400 * NANOSECONDS

ScoreRows = Callable[[NDArray[np.int64]], ScoredRows]
"""From rows to scores: `VersionOnGraph.score_rows`, or on a graph with something left out."""


@dataclass(frozen=True, slots=True)
class NodeEvaluation:
    """Sets of some nodes, and how they came about.

    degree: of the evaluated nodes. absent: calibration nodes that have left the graph. sentence:
    how the network's outputs were computed. extra_scores, extra_degree: of the rows that were only
    scored. promise_notes: classes or groups with too few calibration nodes for their promise.
    fill_notes: how many empty sets were given a class (`nonempty = true`). drift_notes: what
    drift may cost at most, with weights by age. lists: the evaluated nodes on lists, where asked.
    """

    result: Evaluation
    degree: NDArray[np.int64]
    absent: int
    sentence: str
    extra_scores: NDArray[np.float64]
    extra_degree: NDArray[np.int64]
    shift: Mapping[str, Any]
    promise_notes: tuple[str, ...] = ()
    fill_notes: tuple[str, ...] = ()
    drift_notes: tuple[str, ...] = ()
    lists: tuple[NodeList, ...] = ()


def evaluate_nodes(
    version: VersionOnGraph,
    rows: NDArray[np.int64],
    *,
    extra_rows: NDArray[np.int64] = NO_ROWS,
    score: ScoreRows | None = None,
    stopwatch: Stopwatch | None = None,
    lists: Sequence[ListTerms] = (),
) -> NodeEvaluation:
    """Evaluate rows of the mirror with the version's calibration nodes and levels.

    Args:
        version: a version on the graph as it is now.
        rows: nodes to evaluate.
        extra_rows: more nodes whose scores are needed, on the same graph.
        score: another way to score rows than the version's own.
        stopwatch: charged with the forward pass.
        lists: those of the configuration, to say which nodes are on them; none unless given.
    """
    mirror, terms, settings = version.mirror, version.terms, version.settings
    calibration, classes, absent = _calibration_rows(mirror, version.calibration.members)
    wanted = np.concatenate([calibration, rows, extra_rows])
    scored = (score or version.score_rows)(wanted)
    (stopwatch or Stopwatch()).lap("forward", scored.seconds)
    n, m = len(calibration), len(calibration) + len(rows)
    degree = neighbour_counts(version.graph, wanted)
    degrees = NodeDegrees(degree[:n], degree[n:m], _degree_counts(version))
    promise, drift = version.promise, _drift(version, calibration)
    read = partial(_read_property, version, calibration, rows)
    nodes = NodesToCompare(version.model.classes, classes, degrees, drift, read)
    strata, notes = terms.promise_kind.strata(promise, nodes, terms.promise_options(settings))
    list_strata = rule_strata(promise, degrees, drift) if terms.promise_kind.per_class else strata
    known = scored.scores[np.arange(n), classes]
    result = evaluate(
        NodeScores(known, scored.scores[n:m], version.model.naive_of(terms.score)),
        degrees,
        promise,
        drift,
        strata,
        threads_for(scored.scores.size),
    )
    shift = compare_with_calibration(
        {"top probability": scored.top[:m], "entropy": scored.entropy[:m]},
        degrees,
        [] if terms.promise_kind.per_class else strata,
        seed=version.model.manifest["seed"] + len(rows),
        weighted=promise.shift,
        columns=columns_to_compare(version.workspace.mapping, version.model, mirror, wanted[:m]),
    )
    fill_notes: tuple[str, ...] = ()
    if settings.nonempty:
        result, fill_notes = _fill_empty_sets(result)
    return NodeEvaluation(
        result,
        degree[n:m],
        absent,
        scored.sentence,
        scored.scores[m:],
        degree[m:],
        shift,
        notes,
        fill_notes,
        _describe_drift(version, strata, calibration, rows),
        decide_lists(version, lists, scored.log_odds, (calibration, rows), classes, list_strata),
    )


def prediction_table(
    version: VersionOnGraph, rows: NDArray[np.int64], evaluation: NodeEvaluation
) -> PredictionTable:
    """Return the evaluated rows as the store takes them."""
    mirror, result = version.mirror, evaluation.result
    return PredictionTable(
        record_keys_at(mirror, rows),
        version.model.classes,
        result.sets[0],
        result.p_values,
        result.scores,
        evaluation.degree,
        result.bands,
        np.array(mirror.created_ns[rows], np.int64),
        evidence_of(mirror, rows),
    )


def _read_property(
    version: VersionOnGraph,
    calibration: NDArray[np.int64],
    due: NDArray[np.int64],
    property_: str,
) -> PropertyValues:
    """The property of calibration and due nodes as the graph has it now; None without."""
    keys = version.mirror.keys.take([*calibration.tolist(), *due.tolist()])
    workspace, size = version.workspace, version.workspace.settings.engine.read_rows
    values: dict[str, str] = {}
    for start in range(0, len(keys), size):
        groups = node_groups(
            workspace.graph, workspace.mapping, [property_], keys[start : start + size]
        )
        values |= {group.node_key: group.value for group in groups}
    every = [values.get(key) for key in keys]
    return every[: len(calibration)], every[len(calibration) :]


def _calibration_rows(
    mirror: Mirror, members: Sequence[Member]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Rows and classes of the calibration nodes that are still in the graph; how many are not."""
    calibration = sorted(
        (member for member in members if member.role == "calibration"), key=lambda m: m.node_key
    )
    rows = find_recorded(mirror, [member.node_key for member in calibration])
    here = rows >= 0
    if not here.any():
        raise ModelError(
            found="none of the model's calibration nodes is in the graph any more with its class",
            needed="at least one calibration node",
            next_step="ringfence train",
        )
    classes = np.array([member.class_index for member in calibration], np.int64)
    return rows[here], classes[here], int((~here).sum())


def _degree_counts(version: VersionOnGraph) -> NDArray[np.int64]:
    """Nodes of the whole graph by degree; empty for a rule without bands of degree."""
    if not version.terms.rule_kind.uses_bands:
        return NO_ROWS
    mirror = version.mirror
    present = mirror.present & (mirror.labels == CLASSIFIED)  # context has no sets
    return degree_counts(neighbour_counts(version.graph, np.flatnonzero(present)))


def _drift(version: VersionOnGraph, rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Weights of the calibration nodes by age at the watermark; None without a half-life."""
    half_life = version.settings.drift_half_life_days
    if half_life is None:
        return None
    return drift_weights(_ages_in_days(version.mirror, rows), half_life)


def _ages_in_days(mirror: Mirror, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Ages of nodes at the watermark."""
    return np.asarray(
        np.maximum((mirror.watermark_ns or 0) - mirror.created_ns[rows], 0) / DAY_NS, np.float64
    )


def _describe_drift(
    version: VersionOnGraph,
    strata: Sequence[Stratum],
    calibration: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> tuple[str, ...]:
    """What drift may cost where ages have weights; nothing is proved where a rule adds its own."""
    settings, terms = version.settings, version.terms
    proved = not terms.rule_kind.weighs_nodes and terms.weights != "shift"
    if settings.drift_half_life_days is None or not proved:
        return ()
    mirror = version.mirror
    days = _ages_in_days(mirror, calibration), _ages_in_days(mirror, rows)
    return (describe_drift_gap(strata, *days),)


def _fill_empty_sets(result: Evaluation) -> tuple[Evaluation, tuple[str, ...]]:
    """Put the likeliest class into empty sets; return the result and a note where there were."""
    empty = int((~result.sets[0].any(axis=1)).sum())
    sets = np.stack([np.asarray(fill_empty(at_alpha, result.scores)) for at_alpha in result.sets])
    note = f"{empty} empty sets were given their likeliest class (nonempty = true)"
    return replace(result, sets=sets), (note,) if empty else ()
