"""Conformity scores on the graph as it is now, at the rows where a run needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.cores import usable_threads
from ringfence.connector.mirror import Mirror
from ringfence.jobs import inference
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import uniforms_of
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.jobs.project.workspace import Workspace
from ringfence.models.inference import InferenceGraph, neighbourhood
from ringfence.models.inference.pool import MIN_NUMBERS_FOR_THREADS
from ringfence.models.scores.node_scores import needs_neighbours
from ringfence.models.scores.outputs import score_outputs
from ringfence.models.selection.log_odds import class_log_odds


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Scores of all classes at the wanted rows [m, classes]; how the outputs were computed.

    top, entropy: of the network's probabilities at the same rows [m]. seconds: of the forward
    pass, by stage, where it had several. log_odds: of the classes that lists are about [m, lists].
    """

    scores: NDArray[np.float64]
    sentence: str
    top: NDArray[np.float64]
    entropy: NDArray[np.float64]
    seconds: Mapping[str, float] = field(default_factory=dict)
    log_odds: NDArray[np.float64] | None = None


def score_rows(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    graph: InferenceGraph,
    wanted: NDArray[np.int64],
    terms: PromiseTerms,
    tables: Path | None = None,
    listed_classes: Sequence[int] = (),
) -> ScoredRows:
    """Score the rows `wanted`; a score that uses neighbours needs their outputs too.

    `tables` is another folder than the project's for what the forward pass keeps; `listed_classes`
    are those that lists are about, one per list.
    """
    near = None
    if needs_neighbours(terms.score):
        near = neighbourhood(graph, wanted, inference.inner_types(workspace.mapping))
    rows = wanted if near is None else near.rows
    folder = workspace.tables if tables is None else tables
    engine = engine_of(workspace.settings.engine)
    passed = engine.outputs_at(folder, model, mirror, workspace.mapping, graph, rows)
    u = uniforms_of(mirror, rows, node_seed(workspace.settings, model.manifest))
    options, threads = terms.score_options(), threads_for(passed.logits.size)
    scored = score_outputs(terms.score, passed.logits, u, options, near, threads)
    at_wanted = passed.logits if near is None else passed.logits[near.places]
    return ScoredRows(
        scored.scores,
        passed.sentence,
        scored.top,
        scored.entropy,
        passed.seconds,
        class_log_odds(at_wanted, listed_classes) if listed_classes else None,
    )


def threads_for(numbers: int) -> int:
    """Return how many threads share so many numbers: one where more would cost more than help."""
    return usable_threads() if numbers > MIN_NUMBERS_FOR_THREADS else 1
