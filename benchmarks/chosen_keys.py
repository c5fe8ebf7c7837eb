"""What choosing the key of a node is worth: with a seed that can be guessed, and with a seed key.

    python -m benchmarks.chosen_keys

u of a node is a keyed hash of its key. Who opens accounts until one has the key that suits them
takes, of 50 keys, the one whose u is worst for their true class: the largest. With the seed 0 of a
version from before there were seed keys anybody can compute u; with a seed key nobody can, and the
same adversary, who goes on guessing 0, gains nothing. Everyone else's keys are as they come.
"""

from __future__ import annotations

import argparse
import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import keep, show
from ringfence.models.conformal.sets import prediction_sets, threshold
from ringfence.models.hashing import SCORE, uniforms
from ringfence.models.scores import aps, aps_true

GUESSED_SEED = 0
CLASSES = 6
CONCENTRATIONS = {"59 %": 0.3, "87 %": 0.05}  # accuracy of the network -> of its outputs


@dataclass(frozen=True, slots=True)
class ChosenKeys:
    """How often sets held the true class, in percent, with two standard errors.

    coverage: of nodes whose keys were chosen. others: of nodes whose keys were not.
    """

    coverage: float
    others: float
    error: float


def simulate(
    seed_key: int,
    keys_to_choose: int,
    concentration: float,
    *,
    worlds: int,
    nodes: int,
    alpha: float = 0.1,
    seed: int = 1,
) -> ChosenKeys:
    """Let nodes choose the best of some keys by u under the guessed seed; u is of `seed_key`.

    Args:
        seed_key: what u is keyed with.
        keys_to_choose: how many keys each of them can choose from.
        concentration: of the Dirichlet law of the network's outputs; small is sure of itself.
        worlds: draws of calibration nodes.
        nodes: how many calibrate and how many are evaluated, with and without a choice, per world.
        alpha: one minus the promised coverage.
        seed: of the networks' outputs and the true classes.
    """
    rng = np.random.default_rng(seed)
    chosen, others = [], []
    for world in range(worlds):
        probabilities, classes = _draw_nodes(rng, 2 * nodes, concentration)
        known = uniforms((f"s:{world} calibration {i}" for i in range(nodes)), seed_key, SCORE)
        q = threshold(aps_true(probabilities[:nodes], known, classes[:nodes]), alpha)
        evaluated = probabilities[nodes:], classes[nodes:], float(q)
        own = [f"s:{world} {i}" for i in range(nodes)]
        others.append(_covered(*evaluated, uniforms(own, seed_key, SCORE)))
        taken = [_choose_key(world, i, keys_to_choose) for i in range(nodes)]
        chosen.append(_covered(*evaluated, uniforms(taken, seed_key, SCORE)))
    error = 2 * float(np.std(chosen, ddof=1) / np.sqrt(worlds))
    return ChosenKeys(100 * float(np.mean(chosen)), 100 * float(np.mean(others)), 100 * error)


def _choose_key(world: int, node: int, count: int) -> str:
    """The key whose u, as far as the adversary can compute it, is the largest."""
    keys = [f"s:{world} {node} try {attempt}" for attempt in range(count)]
    return keys[int(np.argmax(uniforms(keys, GUESSED_SEED, SCORE)))]


def _covered(
    probabilities: NDArray[np.float64],
    classes: NDArray[np.int64],
    q: float,
    u: NDArray[np.float64],
) -> float:
    sets = prediction_sets(aps(probabilities, u), q)
    return float(np.asarray(sets)[np.arange(len(classes)), classes].mean())


def _draw_nodes(
    rng: np.random.Generator, count: int, concentration: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Outputs of a network [n, classes], and true classes [n] that follow them."""
    probabilities = rng.dirichlet(np.full(CLASSES, concentration), size=count)
    classes = (probabilities.cumsum(axis=1) < rng.random((count, 1))).sum(axis=1)
    return probabilities, classes.clip(0, CLASSES - 1).astype(np.int64)


def main() -> None:
    """Print both cases for some numbers of keys, and keep them."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--worlds", type=int, default=100)
    options.add_argument("--nodes", type=int, default=500)
    options.add_argument("--quick", action="store_true", help="kept beside the results, not over")
    given = options.parse_args()
    rows = []
    seed_key = secrets.randbits(128)
    for name, key in (("seed 0, guessed", GUESSED_SEED), ("a seed key", seed_key)):
        for accuracy, concentration in CONCENTRATIONS.items():
            for count in (1, 5, 50):
                done = simulate(key, count, concentration, worlds=given.worlds, nodes=given.nodes)
                rows.append({
                    "accuracy": accuracy, "key": name, "keys": count, "covered": done.coverage,
                    "error": done.error, "others": done.others,
                })  # fmt: skip
                show(rows[-1])
    keep("chosen_keys", rows, given.quick, worlds=given.worlds, nodes=given.nodes)


if __name__ == "__main__":
    main()
