"""Sets of a finished graph: the whole graph once, or a vote of K random subgraphs.

    python -m benchmarks.subgraph_vote --data FOLDER [--rounds 10]

For GCN on the paper's graphs: coverage and mean set size of nodes that were not calibrated or
learnt from, over several calibration sets, and how many passes of the network each way takes. The
subgraphs are those of the reproduction: K = 10 rounds, in each of which the nodes are split into 5
groups, so that one node by itself takes 10 passes and all of them together 50.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from ringfence.jobs.reproduce.cache import Cache
from ringfence.jobs.reproduce.figures.comparisons import subgraph_sets
from ringfence.jobs.reproduce.scores import PARTS, SUBGRAPHS
from ringfence.jobs.reproduce.sequence_runs import Plan

GRAPHS = ("cora_ml", "citeseer", "pubmed", "amazon_photo")
WAYS = {"whole": 1, "vote": SUBGRAPHS * PARTS, "average": SUBGRAPHS * PARTS}  # way -> passes


def main() -> None:
    """Print a row for each graph and way."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--graphs", nargs="*", default=GRAPHS)
    given = options.parse_args()
    print("| graph | sets from | passes | covered, % | mean set size |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(tuple(given.graphs), given.data, 10, 15, 0, Cache(Path(folder), False))
        for name in given.graphs:
            _print_rows(plan, name, given.rounds)


def _print_rows(plan: Plan, name: str, rounds: int) -> None:
    data = plan.load(name)
    model = plan.model(data, 0)
    measured = [subgraph_sets(plan, data, model, number) for number in range(rounds)]
    for way, passes in WAYS.items():
        values = np.array([record[way] for record in measured])
        coverage, size = values.mean(axis=0)
        error = 2 * values[:, 1].std(ddof=1) / np.sqrt(rounds)
        print(
            f"| {data.title} | {way} | {passes} | {100 * coverage:.1f} | {size:.2f} ± {error:.2f} |"
        )


if __name__ == "__main__":
    main()
