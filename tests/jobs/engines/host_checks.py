"""A pass on Ray as a command on one host of a cluster computes it, in a process of its own.

    python -m tests.jobs.engines.host_checks '{"folder": …, "address": …, "partitions": 2}'

Prints one JSON object: numbers that differ from the local engine's, and where workers were; or the
error. With `strikes_at` it prints where workers are before that call, and waits for a line.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

from ringfence.connector.errors import RingfenceError
from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.engines.partitioned import FeatureRows
from ringfence.jobs.engines.ray_engine import WORKERS
from tests.jobs.engines.network_hosts import DISK
from tests.jobs.engines.ray_checks import project_at
from tests.jobs.engines.ray_projects import DyingEngine
from tests.patience import PATIENCE_SECONDS

PARTITIONS = DISK / "partitions"  # on each host's own disk
FOR_GOOD = "for good\n"  # the line by which a strike says that what it took does not come back
WAIT_SECONDS = 120.0  # after that: for room in a cluster that gets none, for rows never to come


def limit_waits(seconds):
    """Let Ray's workers have so many seconds to start, and to be silent."""
    workers = import_module(WORKERS)
    workers.START_SECONDS = workers.SILENT_SECONDS = seconds


def strike(watched, _number):
    """Say where the workers are, and go on when something was done to their hosts."""
    print(json.dumps({"machines": watched.workers.machines}), flush=True)
    if sys.stdin.readline() == FOR_GOOD:
        limit_waits(WAIT_SECONDS)


def change_a_number():
    """The negative control: one feature of one row is another where it goes to its partition."""
    plain = FeatureRows.__getitem__

    def changed(features, rows):
        found = plain(features, rows)
        found[rows == 7, 0] += 1
        return found

    FeatureRows.__getitem__ = changed


def run_pass(engine, project):
    """Compute a pass after 30 nodes came, save, and tell of it."""
    project.grow(30)
    differing, sentence = project.differing(engine, np.arange(project.mirror.size))
    machines = engine.watched.workers.machines
    project.finish(engine)
    return {
        "differing": differing, "sentence": sentence, "lost": engine.lost, "machines": machines,
    }  # fmt: skip


def main():
    asked = json.loads(sys.argv[1])
    engine = DyingEngine(
        EngineSettings(
            kind="ray", partitions=asked["partitions"], address=asked["address"],
            worker_folder=PARTITIONS,
        )
    )  # fmt: skip
    engine.dies_at, engine.strike, engine.strikes_first = asked.get("strikes_at"), strike, True
    if asked.get("changed"):
        change_a_number()
    project = project_at(Path(asked["folder"]), asked["network"], asked["nodes"])
    try:
        engine._connect()  # Ray's environment is set by now
        limit_waits(PATIENCE_SECONDS)
        told = run_pass(engine, project)
    except RingfenceError as error:
        told = {"error": type(error).__name__, "said": str(error)}
    engine.close()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
