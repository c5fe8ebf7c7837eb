"""Conformity scores on the graph as it is now, at the rows where a run needs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import uniforms_of
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring import inference
from ringfence.models.inference import InferenceGraph, neighbourhood
from ringfence.models.inference.pool import MIN_NUMBERS_FOR_THREADS
from ringfence.models.scores.node_scores import needs_neighbours
from ringfence.models.scores.outputs import score_outputs


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Scores of all classes at the wanted rows [m, classes]; how the outputs were computed.

    top, entropy: of the network's probabilities at the same rows [m]. seconds: of the forward
    pass, by stage, where it had several.
    """

    scores: NDArray[np.float64]
    sentence: str
    top: NDArray[np.float64]
    entropy: NDArray[np.float64]
    seconds: Mapping[str, float] = field(default_factory=dict)


ScoreRows = Callable[
    [Workspace, SavedModel, Mirror, InferenceGraph, NDArray[np.int64], PromiseTerms], ScoredRows
]
"""How rows are scored: `score_rows`, or as if something were otherwise."""


def score_rows(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    graph: InferenceGraph,
    wanted: NDArray[np.int64],
    terms: PromiseTerms,
    tables: Path | None = None,
) -> ScoredRows:
    """Score the rows `wanted`; a score that looks at neighbours needs their outputs too.

    `tables` is another folder than the project's for what the forward pass keeps.
    """
    near = None
    if needs_neighbours(terms.score):
        near = neighbourhood(graph, wanted, inference.inner_types(workspace.mapping))
    rows = wanted if near is None else near.rows
    folder = workspace.tables if tables is None else tables
    engine = engine_of(workspace.settings.engine)
    passed = engine.outputs_at(folder, model, mirror, workspace.mapping, graph, rows)
    u = uniforms_of(mirror, rows, model.manifest["seed"])
    options, threads = terms.score_options(), threads_for(passed.logits.size)
    found = score_outputs(terms.score, passed.logits, u, options, near, threads)
    return ScoredRows(found.scores, passed.sentence, found.top, found.entropy, passed.seconds)


def threads_for(numbers: int) -> int:
    """Return how many threads share so many numbers: one where more would cost more than help."""
    return (os.cpu_count() or 1) if numbers > MIN_NUMBERS_FOR_THREADS else 1
