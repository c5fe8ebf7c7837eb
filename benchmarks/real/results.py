"""The table that `benchmarks.real.run` prints: one line per way, the same nodes in each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.real.baselines import Floats, Quality, measure_quality
from ringfence.connector.store.models import active_manifest
from ringfence.connector.store.predictions import some_predictions
from ringfence.jobs.inference import inference_graph, outputs_at
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.model_files import load_model
from ringfence.jobs.project.workspace import Workspace
from ringfence.models.scores import softmax64

KEYS_PER_QUERY = 500
Chances = Callable[[Sequence[int]], tuple[Floats, list[str]]]


@dataclass(frozen=True, slots=True)
class Sets:
    """How good the sets of some nodes are."""

    quality: Quality
    size: float
    coverage: float


@dataclass(slots=True)
class Table:
    """Lines by way, and for each group of nodes what it reached."""

    title: str
    groups: Mapping[str, int]
    lines: list[str] = field(default_factory=list)

    def add(self, way: str, results: Sequence[Sets | Quality]) -> None:
        """Add one line, and print it."""
        cells = []
        for one in results:
            quality = one.quality if isinstance(one, Sets) else one
            sets = f"{one.size:.2f} | {one.coverage:.3f}" if isinstance(one, Sets) else "– | –"
            cells.append(f"{quality.accuracy:.3f} | {quality.auroc:.3f} | {sets}")
        self.lines.append(f"| {way} | {' | '.join(cells)} |")
        print(self.lines[-1], flush=True)

    def compare(self, ways: Mapping[str, Chances], y: pd.Series, wanted: list[list[int]]) -> None:
        """Add a line for each way; all groups are asked for at once."""
        everyone = [row for rows in wanted for row in rows]
        ends = np.cumsum([len(rows) for rows in wanted])[:-1]
        for way, chances in ways.items():
            found, classes = chances(everyone)
            truth = np.asarray(y.iloc[everyone])
            parts = zip(np.split(found, ends), np.split(truth, ends), strict=True)
            self.add(way, [measure_quality(one, classes, told.tolist()) for one, told in parts])

    def as_markdown(self) -> str:
        """Return the whole table."""
        heads = [
            f"{name} ({count:,}): accuracy | AUROC | set size | coverage"
            for name, count in self.groups.items()
        ]
        rule = "|---" * (1 + 4 * len(self.groups)) + "|"
        head = f"| {self.title} | {' | '.join(heads)} |"
        return "\n".join(["", head, rule, *self.lines])


def judge_sets(workspace: Workspace, truth: Mapping[int, str]) -> Sets:
    """Return how good the sets of some nodes are, by the classes that became known."""
    names = list(json.loads(active_manifest(workspace.store, workspace.project))["classes"])
    keys = [f"i:{key}" for key in truth]
    stored = [
        one
        for start in range(0, len(keys), KEYS_PER_QUERY)
        for one in some_predictions(
            workspace.store, workspace.project, keys[start : start + KEYS_PER_QUERY]
        )
    ]
    y = [truth[int(one.node_key[2:])] for one in stored]
    quality = measure_quality(_chances(workspace, [one.node_key for one in stored]), names, y)
    covered = [class_ in one.classes for class_, one in zip(y, stored, strict=True)]
    return Sets(quality, float(np.mean([one.size for one in stored])), float(np.mean(covered)))


def _chances(workspace: Workspace, keys: list[str]) -> Floats:
    """The network's own chances of some nodes, on the graph after the last run [n, classes].

    p-values are no ranking: they hold each node's own random number.
    """
    mapping = workspace.mapping
    mirror = load_graph(workspace)
    assert mirror is not None
    recorded = active_manifest(workspace.store, workspace.project)
    model = load_model(workspace.models, recorded)
    graph = inference_graph(mirror, mapping)
    rows = mirror.find(keys)
    with tempfile.TemporaryDirectory() as folder:
        passed = outputs_at(Path(folder) / "t", model, mirror, mapping, graph, rows)
    return softmax64(passed.logits)
