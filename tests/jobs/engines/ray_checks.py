"""What tests ask of Ray, in a process of its own.

    python -m tests.jobs.engines.ray_checks FOLDER CHECK

Prints one JSON object. Ray stays out of the tests' process, and torch out of this one.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from ringfence.connector.errors import ServerError
from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.engines.ray_engine import SESSIONS
from ringfence.jobs.engines.table_pass import PartitionedTablePass
from ringfence.models.inference import forward_whole, graph_of
from ringfence.models.inference.plan import plan_named
from tests.jobs.engines.lost_disks import check_lost_disk
from tests.jobs.engines.ray_projects import DyingEngine, Project, kill_driver
from tests.patience import PATIENCE_SECONDS, wait_until

NODES, WIDTH, HIDDEN, CLASSES = 50_000, 6, 8, 3
METHODS = (
    "open", "update", "needs 0", "give 0", "compute 0", "needs 1", "give 1", "compute 1", "outputs",
    "seal",
)  # fmt: skip
WALK_METHODS = ("needs 1", "give 1", "compute 1", "outputs")
QUICK_DEATHS = {  # a node that is gone is missed within ten seconds, a busy one is not
    "RAY_health_check_initial_delay_ms": "0", "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "20",
}  # fmt: skip
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
        one = PartitionedTablePass(workers, name, plan, graph, self.features, self.owners)
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
        some, two = graph.differing(workers, name, plan, np.arange(0, NODES, 999))
        told[name] = [full, some, one.computed, two.computed, two.filled]
    return told


def project_at(folder, network="sage", nodes=2_000):
    return Project(folder / network, network, WEIGHTS[network], nodes, WIDTH, CLASSES)


def check_deaths(engine, folder, methods, network="sage"):
    """A worker is killed inside a pass, at each of some calls: what differs, and what is said."""
    project, told = project_at(folder, network), {}
    for method in methods:
        engine.dies_at, lost = method, engine.lost
        project.grow(30)
        differing, sentence = project.differing(engine, np.arange(project.mirror.size))
        told[method] = [differing, engine.lost - lost, sentence]
        project.finish(engine)
    return told


def check_lost_node(engine, folder, cluster, node):
    """The raylet of a node is killed inside a pass."""
    project, lost = project_at(folder), engine.lost
    project.grow(30)
    workers = engine.open_workers(project.folder / "ray")
    of_node = {one.process.pid for kind in node.all_processes.values() for one in kind}
    for _ in range(40):  # until the node has one of them: Ray places a worker where it likes
        if any(parent_of(process) in of_node for process in workers.processes):
            break
        with suppress(ProcessLookupError):  # one that Ray has ended by itself
            os.kill(workers.processes[0], signal.SIGKILL)
        workers.revive()
    there = [process for process in workers.processes if parent_of(process) in of_node]
    assert there, "no worker came to the node that dies"

    def strike(_watched, _number):
        cluster.remove_node(node, allow_graceful=False)
        # a worker follows its raylet a moment later
        wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in there))

    engine.dies_at, engine.strike = "compute 0", strike
    differing, sentence = project.differing(engine, np.arange(project.mirror.size))
    return [differing, engine.lost - lost, sentence]


def check_cluster(folder):
    """A cluster of two nodes that somebody else started: networks, deaths, a node that is lost."""
    os.environ.update(
        QUICK_DEATHS, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32),
        RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
    )  # fmt: skip
    from ray.cluster_utils import Cluster

    common = {"num_cpus": 2, "object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=common)
    second = cluster.add_node(**common)
    settings = EngineSettings(kind="ray", partitions=2, address=cluster.address)
    engine = DyingEngine(settings)
    workers = engine.open_workers(folder / "forward")
    pids = [one.process.pid for node in (cluster.head_node, second)
            for kind in node.all_processes.values() for one in kind]  # fmt: skip
    told = {"started": pids + workers.processes, "networks": check_networks(workers)}
    told["deaths"] = check_deaths(engine, folder, ("compute 0",))
    told["node"] = check_lost_node(engine, folder, cluster, second)
    engine.close()
    cluster.shutdown()
    return told


def check_every_call(folder):
    """A worker killed at every kind of call, for a network of two layers and for one that walks."""
    engine = DyingEngine(EngineSettings(kind="ray", partitions=2, object_store_mb=80))
    told = {"sage": check_deaths(engine, folder, METHODS)}
    told["appnp"] = check_deaths(engine, folder, WALK_METHODS, "appnp")
    engine.close()
    return told


def check_spilled(folder):
    """Rows in transit that are more than the object store holds: the bits, and what was spilled."""
    nodes, width, hidden = 300_000, 8, 128
    arrays = {
        f"conv{k}.lin_{side}.weight": weights(*shape)
        for k, shape in ((1, (hidden, width)), (2, (CLASSES, hidden))) for side in "lr"
    }  # fmt: skip
    arrays |= {"conv1.lin_l.bias": weights(hidden), "conv2.lin_l.bias": weights(CLASSES)}
    engine = DyingEngine(EngineSettings(kind="ray", partitions=2, object_store_mb=80))
    project = Project(folder / "spilled", "sage", arrays, nodes, width, CLASSES)
    differing, sentence = project.differing(engine, np.arange(nodes))
    logs = (engine._scratch / SESSIONS / "session_latest" / "logs").glob("raylet*")
    spilled = any("Spilled" in log.read_text(errors="replace") for log in logs)
    engine.close()
    return [differing, sentence, spilled]


def check_refusals(folder):
    """A limit of memory that is too small, and a client with another token: what is said."""
    settings = EngineSettings(kind="ray", partitions=2, object_store_mb=80, worker_memory_mb=10)
    engine = DyingEngine(settings)
    project = project_at(folder, nodes=100_000)
    try:
        project.differing(engine, np.arange(project.mirror.size))
        said = "nothing"
    except ServerError as error:
        said = error.found
    import ray

    address = ray.get_runtime_context().gcs_address
    code = f"import ray; ray.init(address={address!r}, log_to_driver=False); print('inside')"
    told = {}
    for name, token in (("same", os.environ["RAY_AUTH_TOKEN"]), ("other", "0" * 64)):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True,
            env=os.environ | {"RAY_AUTH_TOKEN": token}, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        told[name] = "inside" in done.stdout
    engine.close()
    return {"memory": said, "inside": told}


def check_driver(folder, method):
    """The command itself is killed inside a pass; nothing is printed after that."""
    before = set(processes())
    engine = DyingEngine(EngineSettings(kind="ray", partitions=2, object_store_mb=80))
    project = project_at(folder)
    workers = engine.open_workers(folder / "sage" / "ray")
    print(json.dumps(sorted(set(processes()) - before) + workers.processes), flush=True)
    engine.dies_at, engine.strike = method, kill_driver
    project.differing(engine, np.arange(project.mirror.size))


def check_own_raylet(folder):
    """The raylet beside the command is killed inside a pass, and is known to be dead: the error."""
    engine = DyingEngine(EngineSettings(kind="ray", partitions=2, object_store_mb=80))
    project = project_at(folder)

    def strike(_watched, _number):
        for process in processes():
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/raylet") and any(bytes(engine._scratch) in w for w in words):
                os.kill(process, signal.SIGKILL)
        wait_until(lambda: not any(one["Alive"] for one in sys.modules["ray"].nodes()))

    engine.dies_at, engine.strike = "compute 0", strike
    try:
        project.differing(engine, np.arange(project.mirror.size))
    except ServerError as error:
        told = str(error)
    engine.close()
    engine.dies_at = ""
    differing, sentence = project.differing(engine, np.arange(project.mirror.size))
    engine.close()
    return [told, differing, sentence]


def check_local(folder):
    """A cluster that ringfence starts and ends: a pass, and what was left open before it."""
    before = set(processes())
    engine = DyingEngine(EngineSettings(kind="ray", partitions=2, object_store_mb=80))
    project = project_at(folder)
    workers = engine.open_workers(folder / "sage" / "ray")
    started = sorted(set(processes()) - before) + workers.processes
    found = project.differing(engine, np.arange(project.mirror.size))
    project.finish(engine)
    others = engine._scratch.stat().st_mode & 0o077
    environment = {name: os.environ.get(name, "") for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
    engine.close()
    told = {"started": started, "pass": found, "environment": environment}
    return told | {"open_to_others": others}


def parent_of(process):
    """The process that started this one; None where it has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])


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


CHECKS = {
    "own_raylet": check_own_raylet,
    "lost_disk": lambda folder: check_lost_disk(folder, project_at(folder)),
    "cluster": check_cluster, "every_call": check_every_call, "spilled": check_spilled,
    "local": check_local, "refusals": check_refusals, "driver": check_driver,
}  # fmt: skip


def main():
    folder, check, *more = sys.argv[1:]
    print(json.dumps(CHECKS[check](Path(folder), *more)))


if __name__ == "__main__":
    main()
