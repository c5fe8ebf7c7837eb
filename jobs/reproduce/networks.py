"""Curves of any network, by a full forward pass at some steps: GAT, APPNP, MLP, and DAPS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.jobs.reproduce.columns import Curve
from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.jobs.reproduce.protocol import edge_run, node_run, sequence_seed
from ringfence.jobs.reproduce.published import ALPHA
from ringfence.jobs.reproduce.splits import Model
from ringfence.models.networks import build
from ringfence.models.scores import aps, daps, softmax64
from ringfence.models.sequences.sequence import (
    CoverageMatrix,
    coverage_matrix,
    scores_over_time,
)

__all__ = ["DIFFUSION", "forward", "network_curve"]

Floats = NDArray[np.float64]
DIFFUSION = 0.6


def forward(data: Dataset, model: Model) -> Callable[[torch.Tensor], Floats]:
    """The trained network as a function of the edges: probabilities float64 [n, classes]."""
    network = build(model.network, data.x.shape[1], data.classes).eval()
    network.load_state_dict(dict(model.state))
    x = torch.from_numpy(data.x.toarray().astype(np.float32))

    def run(edge_index: torch.Tensor) -> Floats:
        with torch.no_grad():
            return np.asarray(softmax64(network(x, edge_index)))

    return run


def network_curve(
    data: Dataset,
    model: Model,
    probabilities: Callable[[torch.Tensor], Floats],
    kind: str,
    number: int,
    seed: int,
    *,
    steps: int = 20,
    diffusion: float = 0.0,
) -> Curve:
    """Coverage, size and hits of one sequence at ``steps`` fixed times, every rule that fits.

    The same sequence as the table's of this number, seen at every (arrivals / steps)-th step.
    """
    make = edge_run if kind == "edge" else node_run
    run = make(data, model, sequence_seed(seed, number, kind), steps=steps)

    def score(edge_index: torch.Tensor) -> Floats:
        scores = aps(probabilities(edge_index), run.score.u)
        return np.asarray(daps(scores, edge_index, diffusion) if diffusion else scores)

    scores = scores_over_time(run.sequence, score)
    matrices = {"node": coverage_matrix(run.sequence, data.y, scores, ALPHA, "node")}
    matrices["naive"] = coverage_matrix(run.sequence, data.y, scores, ALPHA, "naive")
    if kind == "edge":
        matrices["edge"] = coverage_matrix(run.sequence, data.y, scores, ALPHA, "edge")
    return _curve(matrices, steps)


def _curve(matrices: dict[str, CoverageMatrix], steps: int) -> Curve:
    at = np.arange(1, steps + 1)

    def means(values: Callable[[CoverageMatrix], NDArray[np.generic]]) -> dict[str, Floats]:
        return {
            rule: np.array([values(matrix)[matrix.covered[:, t] >= 0, t].mean() for t in at])
            for rule, matrix in matrices.items()
        }

    return Curve(
        at,
        means(lambda matrix: matrix.covered),  # type: ignore[arg-type]
        means(lambda matrix: matrix.size),  # type: ignore[arg-type]
        means(lambda matrix: (matrix.covered == 1) & (matrix.size == 1)),  # type: ignore[arg-type]
    )
