"""Why this set: what an answer about one node costs, warm.

    python -m benchmarks.why [--quick]

An embedded Neo4j with nodes of 50 columns, and one new node with 100 neighbours. `find_reasons` is
asked twice in one process; the second time counts: kernels are compiled, files are in the page
cache. It asks about every neighbour, the relationship type and every column, and searches the
smallest changes. CPU seconds of this process, one thread; nothing is kept between the calls.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import PUBLISHED_KEY, cpu_seconds, keep, show, wall_seconds
from benchmarks.server import SERVER, running
from ringfence.connector.neo4j.migrate import create_user_indexes
from ringfence.connector.neo4j.write.bulk import create_nodes, create_relationships
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.explanation.find import find_reasons
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.samples.accounts import SAMPLE_MAPPING, batches, load, sample_toml
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.explain import explain, levels_of
from ringfence.models.sample.accounts import sample_graph

COLUMNS, NEIGHBOURS = 50, 100


def measure(nodes: int, network: str) -> dict[str, Any]:
    """Train and score a graph with one node of 100 neighbours, then ask about it."""
    with tempfile.TemporaryDirectory() as name, running(SERVER) as (graph, password):
        folder = Path(name)
        sample = sample_graph(nodes, seed=1, features=COLUMNS, mean_degree=10.0)
        create_user_indexes(graph, SAMPLE_MAPPING)
        known = np.random.default_rng(0).random(nodes) < 0.2
        (first,) = batches(sample, [nodes])
        load(graph, sample, first, known, lambda *_: None)
        text = sample_toml(graph.uri, "why").replace(
            "[model]", f'[model]\nnetwork = "{network}"\nmax_epochs = 20'
        )
        text = text.replace("sqlite:///.ringfence/audit.db", f"sqlite:///{folder / 'audit.db'}")
        (folder / "ringfence.toml").write_text(text, encoding="utf-8")
        environment = {**os.environ, **PUBLISHED_KEY, "RINGFENCE_NEO4J_PASSWORD": password}
        settings = load_settings(folder / "ringfence.toml", environment)
        with open_workspace(settings) as workspace:
            run_migrations(workspace)
            run_training(workspace)
            hub = nodes
            create_nodes(
                graph, SAMPLE_MAPPING, [hub], sample.features[:1], [None], None,
                [{"region": "north"}], lambda *_: None,
            )  # fmt: skip
            others = np.random.default_rng(2).choice(nodes, NEIGHBOURS, replace=False).tolist()
            create_relationships(
                graph, SAMPLE_MAPPING, [hub] * NEIGHBOURS, others, None, lambda *_: None
            )
            run_scoring(workspace)
            told = explain(ProjectQueries(workspace.store, workspace.project), str(hub))
            assert told is not None

            def ask() -> Any:
                return find_reasons(workspace, told.typed_key, told.run.model, levels_of(told))

            first_seconds, cold = wall_seconds(ask)
            seconds, (wall, warm) = cpu_seconds(lambda: wall_seconds(ask))
            assert cold == warm, "an answer must be the same each time"
    return {
        "nodes": nodes,
        "network": network,
        "neighbours": warm.asked,
        "columns": COLUMNS,
        "questions": len(warm.reasons),
        "smallest_changes": len(warm.smallest),
        "first_seconds": first_seconds,
        "warm_cpu_seconds": seconds,
        "warm_seconds": wall,
    }


def main() -> None:
    """Print and keep one row per network and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    sizes = [2_000] if quick else [20_000]
    rows = []
    for nodes in sizes:
        for network in ("gcn", "sage"):
            rows.append(measure(nodes, network))
            show(rows[-1])
    keep("why", rows, quick)


if __name__ == "__main__":
    main()
