"""One point of the benchmark, each side in a process of its own:

python -m benchmarks.partitions.point write|local|ray FOLDER NODES KIND PARTS

`write` writes the mirror, `local` computes a full and a later pass on one machine and leaves their
outputs beside it, `ray` computes them over partitions and compares every bit. Each prints JSON.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import json
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.partitions import processes
from benchmarks.partitions.graph import MAPPING, arrive, saved_model, write_mirror
from ringfence.connector.mirror import load

ROWS_PER_COMPARISON = 1 << 20


@dataclass(slots=True)
class Watch:
    """Measures stage by stage: seconds, CPU seconds, peaks of driver and workers."""

    workers: list[int]
    system: list[int]
    stages: list[dict[str, Any]] = field(default_factory=list)
    begun: float = field(default_factory=time.perf_counter)
    together: Any = None
    cpu: list[float] = field(default_factory=list)
    run: str = ""

    def __post_init__(self) -> None:
        own = os.getpid()
        groups = {"workers_and_store": [*self.workers, *self.system], "all": [
            own, *self.workers, *self.system
        ]}  # fmt: skip
        self.together = processes.TogetherPeak(groups)
        self.begin()

    @property
    def everyone(self) -> list[int]:
        return [os.getpid(), *self.workers]

    def begin(self) -> None:
        for one in self.everyone:
            processes.begin_peak(one)
        self.together.begin()
        self.cpu = [processes.cpu_seconds(one) for one in self.everyone]
        self.begun = time.perf_counter()

    def end(self, name: str, rows: int = 0, moved: int = 0) -> None:
        """Note a stage that is over; the next one begins."""
        cpu = [processes.cpu_seconds(one) for one in self.everyone]
        spent = [now - before for now, before in zip(cpu, self.cpu, strict=True)]
        peaks = [processes.peak_mb(one) for one in self.everyone]
        self.stages.append({
            "run": self.run, "stage": name, "seconds": time.perf_counter() - self.begun,
            "driver_cpu": spent[0], "worker_cpu": spent[1:], "rows": rows, "moved_mb": moved / 1e6,
            "driver_mb": peaks[0], "worker_mb": peaks[1:],
            "together_mb": self.together.peaks["workers_and_store"],
            "with_driver_mb": self.together.peaks["all"],
        })  # fmt: skip
        self.begin()


def compute(folder: Path, kind: str, engine: Any, watch: Watch, tables: str, check: Any) -> dict:
    """A full pass with everyone wanted, then a run's pass after nodes arrived."""
    from ringfence.jobs import inference

    model, mirror = saved_model(), load(folder / "m", "g")
    if mirror is None:
        raise SystemExit("the mirror can't be loaded")
    watch.end("load")
    told: dict[str, Any] = {"nodes": mirror.size, "relationships": mirror.edge_count}
    for name in ("full", "later"):
        wanted = np.arange(mirror.size) if name == "full" else arrive(mirror, kind)
        graph = inference.inference_graph(mirror, MAPPING)
        watch.end("graph")
        watch.run = name
        passed = engine.outputs_at(folder / tables, model, mirror, MAPPING, graph, wanted)
        watch.end("rest")
        engine.close_tables(folder / tables, model, mirror)
        told[name] = passed.sentence
        told[f"{name}_differing"] = check(name, passed.logits)
        watch.begin()
    if watch.workers:
        told |= cut_of(folder / tables, mirror, len(watch.workers))
    return told


def cut_of(tables: Path, mirror: Any, parts: int) -> dict[str, Any]:
    """What the division costs that the pass was computed over."""
    from ringfence.jobs import inference
    from ringfence.jobs.engines.ownership_file import read_owners
    from ringfence.models.inference.partition.ownership import measure_cut

    owners = read_owners(tables, mirror.epoch, parts)
    cut = measure_cut(inference.inference_graph(mirror, MAPPING), owners, parts)
    return {"cut": cut.share, "balance": cut.balance, "halo": cut.halo, "owned": cut.rows,
            "entries": cut.entries}  # fmt: skip


def spilled_mb(scratch: Path) -> float:
    """What the object store wrote to disk because it was full, as Ray's log says it last."""
    lines = [
        one
        for log in (scratch / "session_latest" / "logs").glob("raylet*")
        for one in log.read_text(errors="replace").splitlines()
    ]
    said = [re.search(r"Spilled (\d+) MiB", one) for one in lines]
    return max((float(one.group(1)) for one in said if one), default=0.0)


def local(folder: Path, kind: str) -> dict[str, Any]:
    from ringfence.jobs.config.engine import EngineSettings
    from ringfence.jobs.engines.local import LocalEngine

    def keep(name: str, logits: np.ndarray) -> int:
        np.save(folder / f"{name}.npy", logits)
        return 0

    watch = Watch([], [])
    told = compute(folder, kind, LocalEngine(EngineSettings()), watch, "local", keep)
    return told | {"stages": watch.stages}


def ray(folder: Path, kind: str, parts: int, store_mb: int) -> dict[str, Any]:
    from ringfence.jobs.config.engine import EngineSettings
    from ringfence.jobs.engines.ray_engine import SESSIONS, RayEngine

    settings = EngineSettings(kind="ray", partitions=parts, object_store_mb=store_mb)
    engine = RayEngine(settings)
    workers: Any = engine.open_workers(folder / "ray")
    watch = Watch(workers.processes, processes.processes_of(engine._scratch))

    def compare(name: str, logits: np.ndarray) -> int:
        expected, found = np.load(folder / f"{name}.npy", mmap_mode="r"), 0
        for at in range(0, len(logits), ROWS_PER_COMPARISON):
            part = slice(at, at + ROWS_PER_COMPARISON)
            found += int((logits[part].view(np.int32) != expected[part].view(np.int32)).sum())
        return found + abs(len(expected) - len(logits))

    engine.watch = lambda stage: watch.end(stage.name, stage.rows, stage.moved)
    told = compute(folder, kind, engine, watch, "ray", compare)
    told["spilled_mb"] = spilled_mb(engine._scratch / SESSIONS)
    watch.together.stop()
    engine.close()
    return told | {"stages": watch.stages}


def main() -> None:
    what, place, nodes, kind, parts, store_mb = sys.argv[1:]
    folder, told = Path(place), {}
    if what == "write":
        write_mirror(folder / "m", int(nodes), kind)
    elif what == "local":
        told = local(folder, kind)
    else:
        told = ray(folder, kind, int(parts), int(store_mb))
    print(json.dumps(told))


if __name__ == "__main__":
    main()
