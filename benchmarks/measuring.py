"""What all benchmarks share: time on this machine, memory, graphs, and where results go."""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / ".types")]

import numpy as np  # noqa: E402

RESULTS = ROOT / "docs" / "benchmarks"
PUBLISHED_KEY = {"RINGFENCE_SEED_KEY": f"{0:032x}"}  # the same sets in every run of a benchmark


def cpu_seconds(work: Callable[[], Any], rounds: int = 1) -> tuple[float, Any]:
    """The least CPU time of some rounds (one thread: other programs' work isn't counted)."""
    best, result = float("inf"), None
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def wall_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Time on the clock of one call."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


@cache
def bandwidth_gb() -> float:
    """Reading speed of one thread, GB per CPU second: the sum of 256 MB of float64; asked once."""
    values = np.ones(1 << 25)
    seconds, _ = cpu_seconds(values.sum, rounds=3)
    return values.nbytes / seconds / 1e9


def available_gb() -> float:
    """Memory that could be had now."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) / 1e6
    return float("inf")


def machine() -> dict[str, Any]:
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "bandwidth_gb_per_s": round(bandwidth_gb(), 1),
        "python": platform.python_version(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def keep(name: str, rows: list[dict[str, Any]], quick: bool, **facts: Any) -> None:
    """Write rows as JSON where the report finds them; a quick run is written beside, not over."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / (f"{name}.quick.json" if quick else f"{name}.json")
    body = {"benchmark": name, "machine": machine(), **facts, "rows": rows}
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")


def kept(name: str) -> dict[str, Any]:
    """What `keep` wrote last."""
    body: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return body


def show(row: dict[str, Any]) -> None:
    print("  ".join(f"{name} {_short(value)}" for name, value in row.items()), flush=True)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def random_ends(
    rng: np.random.Generator, nodes: int, count: int, attachment: str
) -> np.ndarray[Any, Any]:
    """Relationships [2, count]: both ends uniform, or one of them by a power law of degrees."""
    source = rng.integers(0, nodes, count)
    if attachment == "uniform":
        return np.stack([source, rng.integers(0, nodes, count)])
    weights = np.cumsum((1.0 - rng.random(nodes)) ** (-1 / 1.8))
    return np.stack([source, np.searchsorted(weights, rng.random(count) * weights[-1])])


def arriving_ends(
    rng: np.random.Generator, nodes: int, new: int, each: int, known: Any, attachment: str
) -> np.ndarray[Any, Any]:
    """`each` relationships of every new node to known nodes, chosen evenly or by their degree."""
    source = np.repeat(np.arange(nodes, nodes + new), each)
    if attachment == "uniform":
        return np.stack([source, rng.integers(0, nodes, len(source))])
    return np.stack([source, known.ravel()[rng.integers(0, known.size, len(source))]])


def resident_mb() -> float:
    """Memory of this process now."""
    return _status_kb("VmRSS") / 1e3


def peak_mb() -> float:
    """The most memory that this process had since `reset_peak`."""
    return _status_kb("VmHWM") / 1e3


def reset_peak() -> None:
    """Let the peak count from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def _status_kb(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise OSError(f"no {name} in /proc/self/status")
