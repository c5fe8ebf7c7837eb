"""All sequences of Table 1, dataset by dataset, from the cache where they are there already."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ringfence.connector.progress import Progress
from ringfence.jobs.reproduce.cache import Cache
from ringfence.jobs.reproduce.datasets import Dataset, DatasetMissing, load
from ringfence.jobs.reproduce.finished import accuracy
from ringfence.jobs.reproduce.protocol import (
    SequenceRecord,
    edge_record,
    node_record,
    sequence_seed,
)
from ringfence.jobs.reproduce.published import ALPHA, LARGE
from ringfence.jobs.reproduce.scores import ScoresRecord, scores_record
from ringfence.jobs.reproduce.splits import Model, trained_model

__all__ = ["GROUP", "Plan", "Results", "Skipped", "run_datasets"]

GROUP = {"node": 10, "edge": 15}
"""Sequences that share one train/validation split, as in the paper."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: datasets, how many sequences of each kind, and from which seed.

    With ``cached_only`` no new sequence is run: what an interrupted run left behind is shown.
    """

    datasets: tuple[str, ...]
    folder: Path | None
    node_sequences: int
    edge_sequences: int
    seed: int
    cache: Cache
    cached_only: bool = False

    def split_of(self, kind: str, number: int) -> int:
        """Which split a sequence belongs to."""
        return number // GROUP[kind]

    def load(self, name: str) -> Dataset:
        """The dataset of this name."""
        return load(name, self.folder, self.cache.folder / "downloads")

    def model(self, data: Dataset, split: int, network: str = "gcn") -> Model:
        """The trained network of one split."""
        return trained_model(data, split, self.seed, self.cache, network)


@dataclass(frozen=True, slots=True)
class Results:
    """Records of one dataset: accuracy per split, and one record per sequence, in order.

    scores: one record per split of node sequences: our rule and other scores.
    """

    name: str
    title: str
    accuracies: tuple[float, ...]
    node: tuple[SequenceRecord, ...]
    edge: tuple[SequenceRecord, ...]
    scores: tuple[ScoresRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A dataset that was asked for and isn't there, with the reason."""

    name: str
    reason: str


def run_datasets(plan: Plan, report: Progress) -> tuple[list[Results], list[Skipped]]:
    """Run every dataset of the plan; Flickr and Reddit2 may be absent, the others may not."""
    results, skipped = [], []
    for name in plan.datasets:
        try:
            data = plan.load(name)
        except DatasetMissing as missing:
            if name not in LARGE:
                raise
            skipped.append(Skipped(name, missing.found))
            continue
        results.append(_run(plan, data, report))
    return results, skipped


def _run(plan: Plan, data: Dataset, report: Progress) -> Results:
    node = _sequences(plan, data, "node", plan.node_sequences, report)
    edge = _sequences(plan, data, "edge", plan.edge_sequences, report)
    splits = 1 + max(
        plan.split_of("node", max(len(node), 1) - 1), plan.split_of("edge", max(len(edge), 1) - 1)
    )
    accuracies = [
        plan.cache.record(
            f"{data.name}/accuracy-{split}",
            lambda split=split: {"accuracy": accuracy(data, plan.model(data, split))},  # type: ignore[misc]
        )["accuracy"]
        for split in range(splits)
    ]
    scores = _scores(plan, data, len(node), report)
    return Results(data.name, data.title, tuple(accuracies), node, edge, scores)


def _scores(
    plan: Plan, data: Dataset, sequences: int, report: Progress
) -> tuple[ScoresRecord, ...]:
    """One record for each split of the node sequences."""
    count = 1 + plan.split_of("node", sequences - 1) if sequences else 0
    records = []
    for split in range(count):
        name, seed = f"{data.name}/scores-{split}", 1_000 * plan.seed + split
        if plan.cached_only and not plan.cache.has(name):
            break
        report(f"{data.title}, scores", split, count)

        def once(split: int = split, seed: int = seed) -> ScoresRecord:
            return scores_record(data, plan.model(data, split), seed)

        records.append(plan.cache.record(name, once))
    report(f"{data.title}, scores", count, count)
    return tuple(records)


def _sequences(
    plan: Plan, data: Dataset, kind: str, count: int, report: Progress
) -> tuple[SequenceRecord, ...]:
    make = node_record if kind == "node" else edge_record
    records = []
    for number in range(count):
        if plan.cached_only and not plan.cache.has(f"{data.name}/{kind}-{number}"):
            break
        report(f"{data.title}, {kind} sequences", number, count)
        seed = sequence_seed(plan.seed, number, kind)

        def once(number: int = number, seed: int = seed) -> SequenceRecord:
            return make(data, plan.model(data, plan.split_of(kind, number)), seed, ALPHA)

        records.append(plan.cache.record(f"{data.name}/{kind}-{number}", once))
    report(f"{data.title}, {kind} sequences", count, count)
    return tuple(records)
