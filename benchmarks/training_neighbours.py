"""Calibration nodes whose neighbours the network was trained on: what leaving them out brings.

    python -m benchmarks.training_neighbours --data DIR [--repetitions 10]

Cora-ML and CiteSeer (`DIR/<name>.npz` as for `make reproduce`) edge by edge in random order. The
nodes of the first two fifths of the edges are there at training: a third of them trains a GCN,
another third calibrates, frozen. The rest of the edges comes in ten batches; nodes are judged in
the batch of their first edge. Calibration nodes have neighbours that the network learnt more often
than newcomers have, and the network knows such nodes better. Three ways within bands of degree:

- bands: as `rule = "auto"` does;
- split: each band is split by whether a node has such a neighbour, where both halves keep at least
  1.5 / alpha calibration nodes;
- untouched: only calibration nodes without such a neighbour judge, and they judge everybody.

± is one standard error over repetitions, each with an order, a split and a network of its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.measuring import keep, show
from ringfence.jobs.reproduce.datasets import Dataset, load
from ringfence.models.conformal.bands import fewest_nodes
from ringfence.models.conformal.evaluate import (
    NodeDegrees,
    NodeScores,
    Promise,
    degree_counts,
    degrees,
    evaluate,
    rule_strata,
)
from ringfence.models.conformal.strata import Stratum
from ringfence.models.networks import GCN
from ringfence.models.rules.degree_bands import DEGREE_BANDS
from ringfence.models.scores import aps, daps, softmax64, tps
from ringfence.models.training.one_label_data import OneLabelData
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train

ALPHA = 0.1
START, BATCHES = 0.4, 10
WAYS = ("bands", "split", "untouched")
SCORES = ("APS", "DAPS", "TPS")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def repetition(data: Dataset, seed: int) -> dict[tuple[str, str], Floats]:
    """Return hits, classes in sets and nodes by score and way; and how many nodes are touched."""
    rng = np.random.default_rng(seed)
    edges = data.edges[:, rng.permutation(data.edges.shape[1])]
    many = edges.shape[1]
    first = np.full(data.nodes, many)  # place of each node's first edge
    np.minimum.at(first, edges.ravel(), np.tile(np.arange(many), 2))
    there = rng.permutation(np.flatnonzero(first < START * many))
    third = len(there) // 3
    learnt, calibration = there[:third], np.sort(there[third : 2 * third])
    x = torch.from_numpy(np.asarray(data.x.todense(), np.float32))
    network = _trained(data, x, edges[:, : int(START * many)], learnt, seed)
    u, found = rng.random(data.nodes), {}
    is_learnt = np.zeros(data.nodes, bool)
    is_learnt[learnt] = True
    for batch in range(BATCHES):
        before, now = (int(many * (START + (1 - START) * b / BATCHES)) for b in (batch, batch + 1))
        due = np.flatnonzero((first >= before) & (first < now))
        both = np.concatenate([edges[:, :now], edges[::-1, :now]], axis=1)
        with torch.no_grad():
            chances = softmax64(network(x, torch.from_numpy(both)))
        touched = np.zeros(data.nodes, bool)
        touched[both[1][is_learnt[both[0]]]] = True
        degree = degrees(both, data.nodes)
        of = NodeDegrees(degree[calibration], degree[due], degree_counts(degree[first < now]))
        for name, scores in _scores(chances, u, both).items():
            for way in WAYS:
                sets = _sets(way, scores, data.y, calibration, due, touched, of)
                hits = sets[np.arange(len(due)), data.y[due]].sum()
                row = np.array([hits, sets.sum(), len(due)], float)
                found[name, way] = found.get((name, way), np.zeros(3)) + row
        shares = np.array([touched[calibration].mean() * len(due), touched[due].sum(), len(due)])
        found["touched", ""] = found.get(("touched", ""), np.zeros(3)) + shares
    return found


def _trained(data: Dataset, x: torch.Tensor, edges: Ints, learnt: Ints, seed: int) -> GCN:
    place = np.full(data.nodes, -1)
    place[learnt] = np.arange(len(learnt))
    inner = place[edges]
    inner = inner[:, (inner >= 0).all(axis=0)]
    both = torch.from_numpy(np.concatenate([inner, inner[::-1]], axis=1))
    network, cut = GCN(x.shape[1], int(data.y.max()) + 1, hidden=64), len(learnt) * 3 // 4
    trained = train(
        network,
        OneLabelData(x[learnt], both),
        TrainingTargets(
            torch.from_numpy(data.y[learnt]), torch.arange(cut), torch.arange(cut, len(learnt))
        ),
        TrainingOptions(seed=seed, max_epochs=200, patience=30),
    )
    network.load_state_dict(trained.state)
    return network.eval()


def _scores(chances: Any, u: Floats, both: Ints) -> dict[str, Floats]:
    own = np.asarray(aps(chances, u))
    spread = np.asarray(daps(own, both, diffusion=0.5))
    return {"APS": own, "DAPS": spread, "TPS": np.asarray(tps(chances))}


def _sets(
    way: str, scores: Floats, y: Ints, known: Ints, due: Ints, touched: Bools, of: NodeDegrees
) -> Bools:
    if way == "untouched":
        kept = ~touched[known]
        known, of = known[kept], NodeDegrees(of.calibration[kept], of.due, of.counts)
    promise = Promise((ALPHA,), DEGREE_BANDS)
    strata = rule_strata(promise, of)
    if way == "split":
        strata = [half for one in strata for half in _halves(one, touched[known], touched[due])]
    true = scores[known, y[known]]
    return evaluate(NodeScores(true, scores[due], true), of, promise, strata=strata).sets[0]


def _halves(one: Stratum, of_known: Bools, of_due: Bools) -> list[Stratum]:
    """A stratum by whether nodes have a neighbour that was learnt; whole where a half is small."""
    inside = of_known[one.calibration]
    if min(inside.sum(), (~inside).sum()) < fewest_nodes(ALPHA):
        return [one]
    return [
        Stratum(
            f"{one.band}, {name}", one.calibration[inside == side],
            one.due[of_due[one.due] == side],
        )
        for name, side in (("touched", True), ("untouched", False))
        if (of_due[one.due] == side).any()
    ]  # fmt: skip


def measure(data: Dataset, repetitions: int) -> list[dict[str, Any]]:
    """Return one row per score and way."""
    done = [repetition(data, seed) for seed in range(repetitions)]
    touched = np.array([one["touched", ""] / one["touched", ""][2] for one in done]).mean(axis=0)
    rows = []
    for score in SCORES:
        for way in WAYS:
            each = np.array([one[score, way] / one[score, way][2] for one in done])
            rows.append(
                {
                    "data": data.name, "score": score, "way": way,
                    "covered": round(float(each[:, 0].mean()), 4),
                    "covered_se": round(float(each[:, 0].std(ddof=1) / len(each) ** 0.5), 4),
                    "mean size": round(float(each[:, 1].mean()), 3),
                    "learnt beside calibration": round(float(touched[0]), 3),
                    "learnt beside newcomers": round(float(touched[1]), 3),
                }
            )  # fmt: skip
            show(rows[-1])
    return rows


def main() -> None:
    """Measure, show and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=["cora_ml", "citeseer"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in options.only:
        rows += measure(load(name, options.data, Path(".ringfence")), options.repetitions)
    keep("training_neighbours", rows, len(options.only) < 2, alpha=ALPHA)


if __name__ == "__main__":
    main()
