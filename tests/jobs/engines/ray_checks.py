"""What tests ask of Ray, in a process of its own: python -m tests.jobs.engines.ray_checks FOLDER.

Prints one JSON object. Ray stays out of the tests' process, and torch out of this one.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.engines import registry
from ringfence.jobs.engines.divided_pass import DividedPass
from ringfence.jobs.engines.workers import WorkerLost
from ringfence.models.inference import forward_whole, graph_of
from ringfence.models.inference.plan import plan_named

NODES, WIDTH, HIDDEN, CLASSES = 2_000, 6, 8, 3
rng = np.random.default_rng(0)


def weights(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def attention(name, inputs, heads, each):
    return {
        f"{name}.lin.weight": weights(heads * each, inputs),
        f"{name}.att_src": weights(1, heads, each),
        f"{name}.att_dst": weights(1, heads, each),
        f"{name}.bias": weights(heads * each),
    }


def linear(first, second, bias=""):
    found = {
        f"{first}.weight": weights(HIDDEN, WIDTH),
        f"{second}.weight": weights(CLASSES, HIDDEN),
    }
    ends = (first.removesuffix(bias), second.removesuffix(bias))
    return found | {f"{ends[0]}.bias": weights(HIDDEN), f"{ends[1]}.bias": weights(CLASSES)}


def mean_and_own():
    found = {f"conv1.lin_{side}.weight": weights(HIDDEN, WIDTH) for side in "lr"}
    found |= {f"conv2.lin_{side}.weight": weights(CLASSES, HIDDEN) for side in "lr"}
    return found | {"conv1.lin_l.bias": weights(HIDDEN), "conv2.lin_l.bias": weights(CLASSES)}


WEIGHTS = {
    "gcn": linear("conv1.lin", "conv2.lin", ".lin"),
    "sage": mean_and_own(),
    "gat": attention("conv1", WIDTH, 2, 4) | attention("conv2", 8, 1, CLASSES),
    "appnp": linear("lin1", "lin2"),
    "mlp": linear("lin1", "lin2"),
}


class Graph:
    """A graph that grows by a version, with random owners of its rows."""

    def __init__(self):
        self.ends = rng.integers(0, NODES, (2, 5 * NODES))
        self.features, self.version = weights(NODES, WIDTH), 1
        self.changed = np.ones(NODES, np.int64)
        self.owners = rng.integers(0, 2, NODES).astype(np.int16)

    def grow(self):
        self.version += 1
        n = len(self.features)
        more = np.stack([rng.integers(0, n + 5, 20), rng.integers(n, n + 5, 20)])
        self.ends = np.hstack([self.ends, more])
        self.features = np.vstack([self.features, weights(5, WIDTH)])
        self.changed = np.append(self.changed, np.zeros(5, np.int64))
        self.changed[np.append(more.ravel(), np.arange(n, n + 5))] = self.version
        self.owners = np.append(self.owners, rng.integers(0, 2, 5).astype(np.int16))

    def differing(self, workers, name, plan, wanted):
        """Numbers that differ from those of a whole pass, and the pass."""
        graph = graph_of(self.ends, len(self.features), changed=self.changed, version=self.version)
        one = DividedPass(workers, name, plan, graph, self.features, self.owners)
        found = one.run(wanted)
        whole = forward_whole(plan, graph, self.features)[wanted]
        return int((found.view(np.int32) != whole.view(np.int32)).sum()), one


def check_networks(workers):
    """By network: differing numbers of a full and of an incremental pass, rows computed by each."""
    told = {}
    for name, arrays in WEIGHTS.items():
        graph, plan = Graph(), plan_named(name, arrays, np.zeros(WIDTH), np.ones(WIDTH), {})
        full, one = graph.differing(workers, name, plan, np.arange(NODES))
        workers.get([workers.call(part, "close_state", 1)[0] for part in (0, 1)])
        graph.grow()
        some, two = graph.differing(workers, name, plan, np.arange(0, NODES, 99))
        told[name] = [full, some, one.computed, two.computed, two.filled]
    return told


def check_death(workers):
    """A worker is killed between two passes: was it noticed, and is the next pass right?"""
    graph, plan = Graph(), plan_named("sage", WEIGHTS["sage"], np.zeros(WIDTH), np.ones(WIDTH), {})
    graph.differing(workers, "death", plan, np.arange(NODES))
    os.kill(workers.processes[1], signal.SIGKILL)
    lost = False
    try:
        graph.differing(workers, "death", plan, np.arange(NODES))
    except WorkerLost:
        lost = True
    workers.revive()
    differing, one = graph.differing(workers, "death", plan, np.arange(NODES))
    return [lost, differing, one.filled, one.computed]


def processes():
    """Processes whose command line names a folder of a cluster that ringfence started."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if b"rf-ray-" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def main():
    before = set(processes())
    settings = EngineSettings(kind="ray", partitions=2, object_store_mb=80)
    engine = registry.engine_of(settings)
    workers = engine.open_workers(Path(sys.argv[1]) / "forward")
    started = sorted(set(processes()) - before) + workers.processes
    if "wait" in sys.argv:
        print(json.dumps(started), flush=True)
        signal.pause()
    told = {"networks": check_networks(workers), "death": check_death(workers), "started": started}
    registry.close_engines()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
