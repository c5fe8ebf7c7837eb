"""An epoch of training beside a plain PyG loop, on an idle machine and beside busy processes.

    python -m benchmarks.training [--quick | --nodes 10000 100000 1000000]

The same GraphSAGE (16 columns, width 64, 4 classes, 4 edges per node) is trained by three processes
that stay alive and take turns within every round, each on both passes of an epoch (learning and
validation):

- ringfence: `models.training.train` with the threads that `ringfence train` chooses;
- one thread: the same with one;
- plain PyG: the loop of PyG's examples with torch's own choice of threads and of waiting.

Busy processes are endless loops; they run during the rounds of their row alone. Ratios are taken
within a round, medians over rounds; `load` is the machine's during the row. Weights of ringfence
with and without further threads are compared bit by bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring import ROOT, keep, random_ends, show

NODES, QUICK_NODES, ALL_NODES = (10_000, 100_000), (2_000,), (10_000, 100_000, 1_000_000)
BUSY = (0, 1, 2)
COLUMNS, WIDTH, CLASSES, EDGES_PER_NODE = 16, 64, 4, 2
WAYS = ("ringfence", "one thread", "plain PyG")
ROUNDS, EPOCHS = 5, 3


def sample_graph(nodes: int) -> tuple[Any, Any, Any]:
    """Return columns, edges in both directions sorted by their end, and classes."""
    import torch

    rng = np.random.default_rng(0)
    ends = random_ends(rng, nodes, EDGES_PER_NODE * nodes, "uniform")
    both = np.concatenate([ends, ends[::-1]], axis=1)
    both = both[:, np.lexsort((both[0], both[1]))]
    columns = rng.standard_normal((nodes, COLUMNS)).astype(np.float32)
    classes = rng.integers(0, CLASSES, nodes)
    return torch.from_numpy(columns), torch.from_numpy(both), torch.from_numpy(classes)


def product_loop(nodes: int, one_thread: bool) -> Callable[[int], str]:
    """Return ringfence's training of so many epochs, which gives a hash of the weights."""
    from ringfence.connector.cores import usable_openmp_threads
    from ringfence.models.networks import SAGE
    from ringfence.models.networks.threads import threads_for
    from ringfence.models.training.one_label_data import OneLabelData
    from ringfence.models.training.train import TrainingOptions, TrainingTargets, train

    x, edges, y = sample_graph(nodes)
    import torch

    network, graph = SAGE(COLUMNS, CLASSES, hidden=WIDTH), OneLabelData(x, edges)
    targets = TrainingTargets(y, torch.arange(nodes // 2), torch.arange(nodes // 2, nodes))
    usable = 1 if one_thread else usable_openmp_threads()

    def run(epochs: int) -> str:
        options = TrainingOptions(seed=0, max_epochs=epochs, patience=epochs)
        with threads_for(graph.edge_count, usable, WIDTH):
            state = train(network, graph, targets, options).state
        weights = b"".join(value.numpy().tobytes() for value in state.values())
        return hashlib.sha256(weights).hexdigest()

    return run


def plain_loop(nodes: int) -> Callable[[int], str]:
    """Return the loop of PyG's examples, with a validation pass in every epoch."""
    import torch
    from torch.nn import functional
    from torch_geometric.nn import SAGEConv

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = SAGEConv(COLUMNS, WIDTH), SAGEConv(WIDTH, CLASSES)

        def forward(self, x: Any, edges: Any) -> Any:
            hidden = functional.dropout(self.conv1(x, edges).relu(), 0.5, self.training)
            return self.conv2(hidden, edges)

    x, edges, y = sample_graph(nodes)
    learnt, checked = slice(nodes // 2), slice(nodes // 2, nodes)

    def run(epochs: int) -> str:
        network = Network()
        optimiser = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
        for _ in range(epochs):
            network.train()
            optimiser.zero_grad()
            functional.cross_entropy(network(x, edges)[learnt], y[learnt]).backward()
            optimiser.step()
            network.eval()
            with torch.no_grad():
                functional.cross_entropy(network(x, edges)[checked], y[checked]).item()
        return ""

    return run


def work(way: str, nodes: int) -> None:
    """Train so many epochs per line of standard input; answer each with its cost as JSON."""
    from ringfence.connector.cores import wait_passively

    if way == "plain PyG":
        run = plain_loop(nodes)
    else:
        wait_passively()
        run = product_loop(nodes, way == "one thread")
    run(1)
    print("ready", flush=True)
    for line in sys.stdin:
        clock, cpu = time.perf_counter(), time.process_time()
        digest = run(int(line))
        spent = {"clock": time.perf_counter() - clock, "cpu": time.process_time() - cpu}
        print(json.dumps(spent | {"weights": digest}), flush=True)


@contextmanager
def workers(nodes: int) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Run one process per way."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.training", "--nodes", str(nodes)]
    ways = {
        way: subprocess.Popen(
            [*command, "--worker", way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=ROOT,
        )
        for way in WAYS
    }  # fmt: skip
    try:
        for way, process in ways.items():
            if _answer(process) != "ready\n":
                raise SystemExit(f"the process of {way} ended with {process.wait()}")
        yield ways
    finally:
        for process in ways.values():
            process.kill()
            process.wait()


def _answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def ask(process: subprocess.Popen[str], epochs: int) -> dict[str, Any]:
    """Let a process train; return what it cost per epoch."""
    assert process.stdin is not None
    process.stdin.write(f"{epochs}\n")
    process.stdin.flush()
    spent: dict[str, Any] = json.loads(_answer(process))
    return spent | {name: spent[name] / epochs for name in ("clock", "cpu")}


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep so many processors busy."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure(
    ways: dict[str, subprocess.Popen[str]], nodes: int, busy: int, rounds: int
) -> dict[str, Any]:
    """Return a row: milliseconds per epoch of each way, and ratios within rounds."""
    with busy_processes(busy):
        spent = [
            {way: ask(process, EPOCHS) for way, process in ways.items()} for _ in range(rounds)
        ]
        load = round(os.getloadavg()[0], 1)
    row: dict[str, Any] = {"nodes": nodes, "busy": busy, "load": load, "rounds": rounds}
    for way in WAYS:
        for kind in ("clock", "cpu"):
            row[f"{way}, {kind} ms"] = 1e3 * median(of[way][kind] for of in spent)
    for kind in ("clock", "cpu"):
        row[f"of one thread, {kind}"] = ratio(spent, "ringfence", "one thread", kind)
        row[f"x PyG, {kind}"] = ratio(spent, "plain PyG", "ringfence", kind)
    row["same weights"] = len({of[way]["weights"] for of in spent for way in WAYS[:2]}) == 1
    show(row)
    return row


def ratio(spent: list[dict[str, dict[str, Any]]], way: str, base: str, kind: str) -> float:
    """Return the median over rounds of one way's cost over another's."""
    return median(of[way][kind] / of[base][kind] for of in spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, nargs="+", help=f"{ALL_NODES} take half an hour")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--worker", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.worker, given.nodes[0])
        return
    rows = []
    for nodes in given.nodes or (QUICK_NODES if given.quick else NODES):
        with workers(nodes) as ways:
            rounds = 2 if given.quick else given.rounds
            rows += [measure(ways, nodes, busy, rounds) for busy in BUSY]
    keep("training", rows, given.quick)


if __name__ == "__main__":
    main()
