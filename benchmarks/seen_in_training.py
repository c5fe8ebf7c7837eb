"""What training sees where few nodes are labelled: learnt nodes alone, or all that had arrived?

    python -m benchmarks.seen_in_training [--repetitions 20]

Accounts arrive in random order, each with weak columns of its own; relationships join mostly
accounts of one kind, those of mules are more, and come with their later end. When half of the
accounts are there, a fifth of them is labelled: half of these are trained on, a fifth stops the
training, the rest calibrates. The newest accounts are judged on arrival, on the graph as it is
then: log loss, coverage and size of TPS sets at 90 %. `learnt` is the graph of train and validation
nodes alone, as versions before had it; `arrived` that of every node that was there by the latest of
them. What a fit costs in coverage would be seen here: calibration nodes are in the graph that
training sees, newcomers are not.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import keep, show
from ringfence.connector.keys import encode_key
from ringfence.connector.mapping import ColumnMapping, GraphMapping, NodeMapping, RelationMapping
from ringfence.connector.mirror import Mirror, RawBlock, RelationshipBlock, context_key, create_raw
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.inference import inference_graph, outputs_at
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.training.fit import fit_to
from ringfence.jobs.training.fitted import FittedNetwork
from ringfence.jobs.training.several_labels import SeveralLabels
from ringfence.jobs.training.split import Split, stop_by_latest
from ringfence.models.scores import softmax64

Ints = NDArray[np.int64]

NODES, COLUMNS, EACH, ALIKE, ACTIVE, ALPHA = 3_000, 6, 5, 0.8, 1.5, 0.1
LABELLED_AT, LABELLED, NEWEST = 0.5, 0.2, 300
SEEN = ("learnt", "arrived")
SCORERS = ("trees", "trees, degrees", "typed_sage, degrees")
MAPPING = GraphMapping(
    (NodeMapping("Account", "key", tuple(ColumnMapping(f"x{i}") for i in range(COLUMNS)), "at"),),
    (RelationMapping(0, "PAID", 0),),
    "kind",
    "zoned",
)


def write_mirror(place: Path, seed: int) -> Mirror:
    """Return a mirror of accounts and payments; the time of an account is its place in line."""
    rng = np.random.default_rng((seed, 31))
    mule = rng.random(NODES) < 0.5
    columns = [rng.normal(0.3 * mule, 1.0).tolist() for _ in range(COLUMNS)]
    weight = np.where(mule, ACTIVE, 1.0)
    source = rng.choice(NODES, NODES * EACH, p=weight / weight.sum())
    alike = rng.random(len(source)) < ALIKE
    chances = [weight * (mule == kind) for kind in (False, True)]
    target = np.empty(len(source), np.int64)
    for kind in (False, True):
        here = mule[source] == kind
        for same in (False, True):
            rows = np.flatnonzero(here & (alike == same))
            chance = chances[int(kind == same)]
            target[rows] = rng.choice(NODES, len(rows), p=chance / chance.sum())
    mirror = create_raw(place, "world", MAPPING.column_names)
    mirror.advance()
    keys = [context_key(0, encode_key(int(at))) for at in range(NODES)]
    kinds = np.where(mule, "mule", "plain").tolist()
    mirror.add_nodes([RawBlock(0, keys, columns, kinds, np.arange(NODES, dtype=np.int64))])
    ends = [[keys[at] for at in side.tolist()] for side in (source, target)]
    mirror.add_block(RelationshipBlock(0, *ends))
    mirror.add_relationships([])
    return mirror


def split_early(mirror: Mirror, seed: int) -> Split:
    """The labelled nodes of the early graph by role."""
    rng = np.random.default_rng((seed, 32))
    early = rng.permutation(int(NODES * LABELLED_AT))[: int(NODES * LABELLED_AT * LABELLED)]
    train, validation, calibration = np.split(early, [len(early) // 2, len(early) * 7 // 10])
    classes = tuple(sorted(mirror.class_names))
    order = np.array([classes.index(name) for name in mirror.class_names], np.int64)
    split = Split(classes, order[np.asarray(mirror.classes)], train, validation, calibration)
    return stop_by_latest(mirror, split)


def fit_seeing(mirror: Mirror, split: Split, scorer: str, seen: str, seed: int) -> FittedNetwork:
    """Fit a scorer that sees so much of the graph in training."""
    network, _, degrees = scorer.partition(", ")
    settings = ModelSettings(network=network, degrees=bool(degrees), seed=seed)
    learnt = np.concatenate([split.train, split.validation]) if seen == "arrived" else None
    inputs = SeveralLabels(mirror, MAPPING).fit_inputs(settings, split.train, learnt)
    return fit_to(inputs, split, None)


def judge_newest(
    mirror: Mirror, split: Split, fitted: FittedNetwork, place: Path
) -> tuple[float, float, float]:
    """Log loss, coverage and size of sets of the newest nodes."""
    facts = {**fitted.manifest_facts(), "classes": list(split.classes)}
    model = SavedModel("v", fitted.weights, fitted.inputs.scaling, np.empty(0), facts)
    due = np.arange(NODES - NEWEST, NODES)
    wanted = np.concatenate([split.calibration, due])
    graph = inference_graph(mirror, MAPPING)
    outputs = outputs_at(place, model, mirror, MAPPING, graph, wanted).logits
    chances, truth = softmax64(outputs), split.class_indices[wanted]
    of_truth, n = chances[np.arange(len(wanted)), truth], len(split.calibration)
    rank = int(ALPHA * (n + 1))
    sets = chances[n:] >= np.sort(of_truth[:n])[rank - 1]
    covered = sets[np.arange(NEWEST), truth[n:]]
    return float(-np.log(of_truth[n:]).mean()), float(covered.mean()), float(sets.sum(1).mean())


def measure(scorers: tuple[str, ...], repetitions: int) -> list[dict[str, Any]]:
    """A row per scorer and view: means over repetitions with standard errors."""
    runs: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for seed in range(repetitions):
        with tempfile.TemporaryDirectory() as folder:
            mirror = write_mirror(Path(folder) / "mirror", seed)
            split = split_early(mirror, seed)
            for scorer in scorers:
                for seen in SEEN:
                    fitted = fit_seeing(mirror, split, scorer, seen, seed)
                    place = Path(folder) / f"{scorer} {seen}"
                    judged = judge_newest(mirror, split, fitted, place)
                    runs.setdefault((scorer, seen), []).append(judged)
    rows = []
    for (scorer, seen), judged_runs in runs.items():
        means = np.mean(judged_runs, axis=0)
        errors = np.std(judged_runs, axis=0, ddof=1) / np.sqrt(repetitions)
        row: dict[str, Any] = {"scorer": scorer, "seen": seen}
        for name, mean, error in zip(("log_loss", "covered", "size"), means, errors, strict=True):
            row |= {name: float(mean), f"{name}_se": float(error)}
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    rows = measure(SCORERS, 4 if given.quick else given.repetitions)
    for row in rows:
        show(row)
    keep("seen_in_training", rows, given.quick, repetitions=given.repetitions)


if __name__ == "__main__":
    main()
