"""What grows in a process that lives long: scheduled runs of small batches, one after the other.

    python -m benchmarks.long_life [--runs 1000] [--quick]

A scheduler's runner claims and runs `score` each time a few accounts have arrived, and `audit`
every ten runs, as `ringfence schedule` does. At intervals: resident memory, open files, threads and
mapped files of the process, and the bytes of WAL, store, mirror, kept rows and logs on disk. What
belongs to the graph grows with it (`mirror_per_node` has the bytes per account); all else should
level off.
"""

from __future__ import annotations

import argparse
import gc
import logging
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import PUBLISHED_KEY, keep, resident_mb, show
from ringfence.connector.neo4j import embedded
from ringfence.jobs.config.load import load
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.folders import MIRROR, TABLES, project_folder
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.samples.accounts import Batch, batches, reveal, sample_toml
from ringfence.jobs.samples.accounts import load as load_batch
from ringfence.jobs.schedule.runner import JobRunner
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.telemetry.log_lines import configure_logging
from ringfence.models.sample.accounts import SampleGraph, sample_graph

FIRST = 600  # accounts before the first run
BATCH = 5  # accounts per run
RUNS_PER_AUDIT = 10
ROWS = 20  # of the printed table
SCHEDULE = '[schedule]\nscore = "every 1 second"\naudit = "every 1 second"\nverify = ""\n'


@dataclass(frozen=True, slots=True)
class Life:
    """A project and the accounts that arrive in it."""

    settings: Settings
    sample: SampleGraph
    parts: list[Batch]

    @property
    def folder(self) -> Path:
        """The folder of everything that the project keeps."""
        return self.settings.engine.folder

    def arrive(self, workspace: Workspace, place: int, known: bool = False) -> None:
        """Write the accounts of a part to the graph."""
        labelled = np.full(self.sample.nodes, known)
        load_batch(workspace.graph, self.sample, self.parts[place], labelled, lambda *_: None)


@contextmanager
def make_project(folder: Path, runs: int) -> Iterator[Life]:
    """Start a server, write the first accounts, train; the server ends with the block."""
    from ringfence.jobs.training.train import run_training

    path = folder / "ringfence.toml"
    path.write_text(sample_toml("embedded", "long-life") + SCHEDULE, encoding="utf-8")
    settings = load(path, PUBLISHED_KEY)
    sample = sample_graph(FIRST + BATCH * runs, seed=0, mean_degree=8.0)
    life = Life(settings, sample, list(batches(sample, [FIRST] + [BATCH] * runs)))
    with embedded.running(settings.engine.folder / "neo4j"):
        with open_workspace(settings) as workspace:
            run_migrations(workspace)
            life.arrive(workspace, 0, known=True)
            run_training(workspace)
        yield life


def measure(life: Life, runs: int, seconds: float) -> dict[str, Any]:
    """Return what the process and the project hold now."""
    gc.collect()
    project = project_folder(life.folder, life.settings.project)
    accounts = FIRST + BATCH * runs
    sizes = {
        "wal": _bytes(life.folder, "*.db-wal"),
        "store": _bytes(life.folder, "*.db"),
        "mirror": _bytes(project / MIRROR, "**/*"),
        "kept_rows": _bytes(project / TABLES, "**/*"),
        "logs": _bytes(life.folder / "neo4j" / "logs", "**/*")
        + _bytes(life.folder.parent, "*.log"),
    }
    return {
        "runs": runs,
        "s_per_run": round(seconds, 2),
        "rss_mb": round(resident_mb()),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "maps": len(Path("/proc/self/maps").read_text().splitlines()),
        **{f"{name}_kb": round(size / 1e3) for name, size in sizes.items()},
        "mirror_per_node": round(sizes["mirror"] / accounts),
        "mirror_files": len(list((project / MIRROR).rglob("*"))),
    }


def _bytes(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.glob(pattern) if path.is_file())


def live(life: Life, runs: int) -> list[dict[str, Any]]:
    """Let batches arrive and a runner score them; return a row at each interval."""
    runner, rows = JobRunner(life.settings, threading.Event()), []
    every = max(runs // ROWS, 1)
    began = time.perf_counter()
    with open_workspace(life.settings) as workspace:  # who writes to the graph, beside the runner
        for number in range(1, runs + 1):
            life.arrive(workspace, number)
            run_when_due(runner, "score")
            if number % RUNS_PER_AUDIT == 0:
                reveal(workspace.graph, life.sample, life.parts[number - RUNS_PER_AUDIT + 1].nodes)
                run_when_due(runner, "audit")
            if number % every == 0 or number == 1:
                rows.append(measure(life, number, (time.perf_counter() - began) / number))
                show(rows[-1])
    return rows


def run_when_due(runner: JobRunner, job: str) -> None:
    """Poll as the scheduler's loop does until a job is due, then run it."""
    while job not in runner.poll():
        time.sleep(0.05)
    runner.run_if_due(job)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--quick", action="store_true", help="40 runs")
    options = parser.parse_args()
    runs = 40 if options.quick else options.runs
    configure_logging(as_json=False)
    for name in ("ringfence.schedule", "ringfence.run"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with (
        tempfile.TemporaryDirectory(prefix="long-life-") as folder,
        make_project(Path(folder), runs) as life,
    ):
        rows = live(life, runs)
    keep("long_life", rows, options.quick, batch=BATCH, first=FIRST)


if __name__ == "__main__":
    main()
