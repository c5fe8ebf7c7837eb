"""Lists: promised against realised share of wrong nodes, in simulated worlds and on real graphs.

    python -m benchmarks.lists [--flights FOLDER] [--faers FOLDER] [--quick] [--seed 0]
    python -m benchmarks.lists --streams [--quick] [--seed 0]

Beside `per = "run"` and `per = "stream"` stand what people take without them: nodes whose set
holds the class (90 %), nodes with a probability of at least 1 - share, and the lowest score above
which at most `share` of the calibration nodes are wrong (red control). `mean` is the mean over
runs, an empty list counting as 0, `pooled` all wrong nodes over all listed ones. In the worlds a
run has references of its own; on the graphs trees are trained on the past, the later period is
halved at random, and one half arrives in runs in the order of time. `unweighted` are references of
which the rare class gave five times its share, without weights (red control); `weighted` the same
with them. `StratCP` is the selection of the library of that name (0.1.1), where it can be imported;
it is no dependency, since it asks for jupyter and lifelines: `pip install --no-deps stratcp`.
What is left out is said at the end.

`--streams` asks what a promise about all listed nodes together could be kept by (`list_streams`).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import list_streams
from benchmarks.measuring import keep, show
from benchmarks.scorers import (
    MOST_NODES,
    QUICK_NODES,
    World,
    case_world,
    fill_mirror,
    flight_world,
    split_by_time,
)
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.inference import inference_graph, outputs_at
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.training.fit import fit_network
from ringfence.jobs.training.split import stop_by_latest
from ringfence.models.conformal.strata import one_stratum
from ringfence.models.scores import softmax64
from ringfence.models.selection.log_odds import class_log_odds
from ringfence.models.selection.references import (
    References,
    ScoredNodes,
    fair_weights,
    rank_among,
)
from ringfence.models.selection.registry import SCOPES

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Choose = Callable[["Nodes", "Nodes", float, np.random.Generator], Bools]
ALPHA, RUN_NODES, BOOST = 0.1, 100, 5
WORLDS = {"rare, clear": (0.06, 3.0), "rare, blurred": (0.06, 2.0), "common": (0.3, 1.5)}
REAL = {
    "flights": (("very late", False, 0.5), ("on time", False, 0.3), ("very late", True, 0.05)),
    "FAERS": (("HO", False, 0.3), ("DE", False, 0.5), ("DE", True, 0.05)),
}
"""Class, whether the list is of nodes that are not of it, and the promised share."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Log odds of the class, whether a node is of it, and its probability."""

    odds: Floats
    right: Bools
    chance: Floats


@dataclass(slots=True)
class Count:
    """What came of a way to choose over all runs."""

    shares: list[float] = field(default_factory=list)
    listed: int = 0
    wrong: int = 0
    right: int = 0
    empty: int = 0

    def add(self, on: Bools, new: Nodes) -> None:
        listed, wrong = int(on.sum()), int((on & ~new.right).sum())
        self.shares.append(wrong / listed if listed else 0.0)
        self.listed, self.wrong = self.listed + listed, self.wrong + wrong
        self.right, self.empty = self.right + int(new.right.sum()), self.empty + (listed == 0)

    def as_row(self) -> dict[str, Any]:
        runs = len(self.shares)
        return {
            "runs": runs,
            "mean": float(np.mean(self.shares)),
            "standard_error": float(np.std(self.shares) / np.sqrt(runs)),
            "pooled": self.wrong / self.listed if self.listed else None,
            "found": (self.listed - self.wrong) / max(self.right, 1),
            "listed_per_run": self.listed / runs,
            "empty_runs": self.empty / runs,
        }


def by_scope(name: str, boosted: bool = False, weighted: bool = False) -> Choose:
    """The lists of the product; `boosted` takes more references of the class."""

    def choose(known: Nodes, new: Nodes, share: float, rng: np.random.Generator) -> Bools:
        kept = np.ones(len(known.odds), np.bool_)
        if boosted:
            kept = known.right | (rng.random(len(kept)) < 1 / BOOST)
        classes = known.right.astype(np.int64)
        fair = np.bincount(classes, minlength=2).astype(np.float64) if weighted else None
        weight = fair_weights(classes[kept], np.array([True, False]), fair)
        nodes = ScoredNodes(known.odds[kept], rng.random(int(kept.sum())))
        references = References(nodes, ~known.right[kept], weight)
        arriving = ScoredNodes(new.odds, rng.random(len(new.odds)))
        tails = rank_among(references, arriving, one_stratum(len(nodes.score), len(new.odds)))
        return np.asarray(SCOPES[name].shares(tails, len(new.odds), share) <= share)

    return choose


def set_holds_class(known: Nodes, new: Nodes, share: float, rng: np.random.Generator) -> Bools:
    """Nodes whose set at 90 % holds the class, calibrated among nodes of the class."""
    of_class = np.sort(known.odds[known.right])
    rank = int(ALPHA * (len(of_class) + 1))
    return np.asarray(new.odds >= (of_class[rank - 1] if rank else -np.inf))


def probability(known: Nodes, new: Nodes, share: float, rng: np.random.Generator) -> Bools:
    """Nodes of which the network says that they are of the class with 1 - share."""
    return np.asarray(new.chance >= 1 - share)


def naive_threshold(known: Nodes, new: Nodes, share: float, rng: np.random.Generator) -> Bools:
    """The lowest score above which at most a share of the references is wrong."""
    order = np.argsort(-known.odds)
    above = np.cumsum(~known.right[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(above <= share)
    return np.asarray(new.odds >= (known.odds[order[good[-1]]] if len(good) else np.inf))


WAYS: dict[str, Choose] = {
    "per run": by_scope("run"),
    "per stream": by_scope("stream"),
    "set holds the class": set_holds_class,
    "probability": probability,
    "naive threshold": naive_threshold,
    "weighted": by_scope("run", boosted=True, weighted=True),
    "unweighted": by_scope("run", boosted=True),
}


def by_stratcp() -> dict[str, Choose]:
    """The selection of the library StratCP, where it is installed; all nodes are eligible."""
    try:
        from stratcp.selection.single import get_sel_single
    except ImportError:
        return {}

    def choose(known: Nodes, new: Nodes, share: float, rng: np.random.Generator) -> Bools:
        eligible = np.ones(len(known.odds)), np.ones(len(new.odds))
        chosen, _, _ = get_sel_single(
            known.odds, known.right.astype(int), new.odds, share, *eligible
        )
        return np.isin(np.arange(len(new.odds)), chosen)

    return {"StratCP": choose}


WAYS |= by_stratcp()


def simulate(name: str, runs: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield a row per share and way in a world of two overlapping normal classes."""
    rare, distance = WORLDS[name]

    def draw(rng: np.random.Generator, n: int) -> Nodes:
        right = rng.random(n) < rare
        odds = rng.normal(size=n) + distance * right
        log_odds = distance * odds - distance**2 / 2 + np.log(rare / (1 - rare))
        return Nodes(log_odds, right, 1 / (1 + np.exp(-log_odds)))

    for share in (0.1, 0.2, 0.3):
        rng, counts = np.random.default_rng(seed), {way: Count() for way in WAYS}
        for _ in range(runs):
            known, new = draw(rng, 1_000), draw(rng, RUN_NODES)
            for way, choose in WAYS.items():
                counts[way].add(choose(known, new, share, rng), new)
        for way, count in counts.items():
            yield {"world": name, "may_be_wrong": share, "way": way, **count.as_row()}


def replay(world: World, name: str, seed: int, place: Path) -> Iterator[dict[str, Any]]:
    """Yield a row per class, share and way on a real graph in the order of time."""
    mirror = fill_mirror(world, place / "mirror")
    split, test = split_by_time(mirror, seed)
    settings = ModelSettings(network="trees", seed=seed)
    project = SimpleNamespace(
        settings=SimpleNamespace(model=settings, network="trees"), mapping=world.mapping
    )
    fitted = fit_network(project, mirror, stop_by_latest(mirror, split), None)
    facts = {**fitted.manifest_facts(), "classes": list(split.classes)}
    model = SavedModel("trees", fitted.weights, fitted.inputs.scaling, np.empty(0), facts)
    test = test[np.argsort(mirror.created_ns[test], kind="stable")]
    wanted = np.concatenate([split.calibration, test])
    graph = inference_graph(mirror, world.mapping)
    passed = outputs_at(place / "trees", model, mirror, world.mapping, graph, wanted)
    chances, n = softmax64(passed.logits), len(split.calibration)
    truth = split.class_indices[wanted]
    for class_, is_clear, share in REAL[name]:
        place_of = split.classes.index(class_)
        odds, chance = class_log_odds(passed.logits, [place_of])[:, 0], chances[:, place_of]
        every = Nodes(odds, truth == place_of, chance)
        if is_clear:
            every = Nodes(-odds, truth != place_of, 1 - chance)
        known = Nodes(every.odds[:n], every.right[:n], every.chance[:n])
        rng, counts = np.random.default_rng(seed), {way: Count() for way in WAYS}
        for start in range(n, len(wanted), RUN_NODES):
            part = slice(start, start + RUN_NODES)
            new = Nodes(every.odds[part], every.right[part], every.chance[part])
            for way, choose in WAYS.items():
                counts[way].add(choose(known, new, share, rng), new)
        for way, count in counts.items():
            what = f"not {class_}" if is_clear else class_
            facts = {"world": f"{name}, {what}", "may_be_wrong": share, "way": way}
            yield facts | count.as_row()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flights", type=Path)
    parser.add_argument("--faers", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--streams", action="store_true")
    given = parser.parse_args()
    if given.streams:
        list_streams.run(given.quick, given.seed)
        return
    rows: list[dict[str, Any]] = []
    for name in WORLDS:
        for row in simulate(name, 200 if given.quick else 3_000, given.seed):
            rows.append(row)
            show(row)
    most = QUICK_NODES if given.quick else MOST_NODES
    left_out = [] if "StratCP" in WAYS else ["StratCP (pip install --no-deps stratcp)"]
    worlds = {"flights": (given.flights, flight_world), "FAERS": (given.faers, case_world)}
    for name, (folder, make) in worlds.items():
        if folder is None:
            left_out.append(f"{name} (--{name.lower()} FOLDER)")
            continue
        with tempfile.TemporaryDirectory() as place:
            for row in replay(make(folder, most), name, given.seed, Path(place)):
                rows.append(row)
                show(row)
    print(f"left out: {', '.join(left_out)}" if left_out else "nothing was left out")
    keep("lists", rows, given.quick or bool(left_out), seed=given.seed)


if __name__ == "__main__":
    main()
