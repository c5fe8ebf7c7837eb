"""What a pass over partitions costs, as a formula: fitted on some points, checked on others.

    python -m benchmarks.partitions.cost

A worker with r owned rows, e list entries and h rows of others in its halo, of a graph with n nodes
(f features, w and v columns of the two kept tables, numbers of 4 bytes):

    held     = r (4 (f + w + v) + 28) + 4 h (w + v + 1) + 4 e + 3 n        bytes
    received = 4 h (w + v + 2)                                            bytes
    memory   = a + b held          CPU = c e + d received
    driver's memory = p + q n      driver's CPU = s (all entries)

and the halo where each partition has n / P rows and a share x of E relationships leads anywhere:

    o = n (1 - 1/P)      h = o (1 - exp(-2 E x / (P n)))

Held and received are counted, not fitted; a, b, c, d, p, q, s are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.measuring import RESULTS, kept
from benchmarks.partitions.graph import CLASSES, CROSSING, HIDDEN, WIDTH

CHECKED = ("community:1000000:4", "uniform:1000000:4", "community:10000000:4")
FIRST, SECOND = HIDDEN, 2 * CLASSES
LARGE_NODES, LARGE_RELATIONSHIPS = 100_000_000, 1_000_000_000
MACHINES = (1, 4, 16, 64)
NETWORK_BYTES_PER_SECOND = 1.25e9  # 10 Gbit/s; assumed, never measured here


@dataclass(frozen=True, slots=True)
class Costs:
    """The fitted constants; bytes and seconds."""

    base: float
    per_held: float
    per_entry: float
    per_received: float
    driver_base: float
    driver_per_node: float
    driver_per_entry: float
    single_base: float
    single_per_node: float

    def memory(self, rows: float, entries: float, halo: float, nodes: float) -> float:
        """Peak of a worker, bytes."""
        return self.base + self.per_held * held(rows, entries, halo, nodes)

    def cpu(self, entries: float, halo: float) -> float:
        """CPU seconds of a worker in a full pass, the filling of its partition with it."""
        return self.per_entry * entries + self.per_received * received(halo)


def held(rows: float, entries: float, halo: float, nodes: float) -> float:
    """Bytes that a worker's arrays hold."""
    own = rows * (4 * (WIDTH + FIRST + SECOND) + 28)
    return own + 4 * halo * (FIRST + SECOND + 1) + 4 * entries + 3 * nodes


def received(halo: float) -> float:
    """Bytes that a full pass of two layers brings a worker."""
    return 4 * halo * (FIRST + SECOND + 2)


def halo_rows(nodes: float, relationships: float, parts: int, crossing: float) -> float:
    """Rows of others that a partition reads, where a share of the relationships leads anywhere.

    >>> round(halo_rows(1_000, 0, 4, 1.0))
    0
    """
    others = nodes * (1 - 1 / parts)
    return float(others * -np.expm1(-2 * relationships * crossing / (parts * nodes)))


def _fit(columns: list[list[float]], values: list[float]) -> list[float]:
    """Constants that are not negative, by relative error: small points count as large ones do."""
    left, right = np.array(columns, np.float64), np.array(values, np.float64)
    found, _ = nnls(left / right[:, None], np.ones(len(right)))
    return [float(one) for one in found]


def _workers(row: dict[str, Any]) -> list[dict[str, float]]:
    """Per worker: what it owns, its peak in bytes, its CPU seconds of the full pass."""
    many = row["ray"]
    stages = many["stages"]
    full = [stage for stage in stages if stage["run"] == "full"]
    return [
        {
            "rows": many["owned"][i], "entries": many["entries"][i], "halo": many["halo"][i],
            "nodes": many["nodes"], "memory": 1e6 * max(one["worker_mb"][i] for one in stages),
            "cpu": sum(one["worker_cpu"][i] for one in full),
        }
        for i in range(row["parts"])
    ]  # fmt: skip


def _driver(row: dict[str, Any]) -> dict[str, float]:
    stages = row["ray"]["stages"]
    return {
        "nodes": row["ray"]["nodes"], "entries": sum(row["ray"]["entries"]),
        "memory": 1e6 * max(one["driver_mb"] for one in stages),
        "cpu": sum(one["driver_cpu"] for one in stages if one["run"] == "full"),
        "single": 1e6 * max(one["driver_mb"] for one in row["local"]["stages"]),
    }  # fmt: skip


def fit(rows: list[dict[str, Any]]) -> Costs:
    """Return the constants that fit these points."""
    workers = [one for row in rows for one in _workers(row)]
    drivers = [_driver(row) for row in rows]
    bytes_held = [held(w["rows"], w["entries"], w["halo"], w["nodes"]) for w in workers]
    base, per_held = _fit([[1.0, one] for one in bytes_held], [w["memory"] for w in workers])
    moved = [[w["entries"], received(w["halo"])] for w in workers]
    per_entry, per_received = _fit(moved, [max(w["cpu"], 0.01) for w in workers])
    nodes = [[1.0, d["nodes"]] for d in drivers]
    driver = _fit(nodes, [d["memory"] for d in drivers])
    (driver_per_entry,) = _fit([[d["entries"]] for d in drivers], [d["cpu"] for d in drivers])
    single = _fit(nodes, [d["single"] for d in drivers])
    return Costs(base, per_held, per_entry, per_received, *driver, driver_per_entry, *single)


def compare(costs: Costs, row: dict[str, Any]) -> dict[str, float]:
    """Predicted and measured at one point: the largest worker, bytes received, CPU, driver."""
    workers, driver = _workers(row), _driver(row)
    parts, relationships = row["parts"], row["ray"]["relationships"]
    guessed = halo_rows(driver["nodes"], relationships, parts, CROSSING[row["kind"]])
    memory = [costs.memory(w["rows"], w["entries"], w["halo"], w["nodes"]) for w in workers]
    return {
        "worker_gb": max(w["memory"] for w in workers) / 1e9, "worker_gb_said": max(memory) / 1e9,
        "cpu": sum(w["cpu"] for w in workers),
        "cpu_said": sum(costs.cpu(w["entries"], w["halo"]) for w in workers),
        "driver_gb": driver["memory"] / 1e9,
        "driver_gb_said": (costs.driver_base + costs.driver_per_node * driver["nodes"]) / 1e9,
        "halo": max(w["halo"] for w in workers), "halo_said": guessed,
        "single_gb": driver["single"] / 1e9,
        "single_gb_said": (costs.single_base + costs.single_per_node * driver["nodes"]) / 1e9,
    }  # fmt: skip


def extrapolate(costs: Costs, machines: int, crossing: float) -> dict[str, float]:
    """A billion relationships among 100 million nodes, on so many machines."""
    nodes, relationships = LARGE_NODES, LARGE_RELATIONSHIPS
    driver = (costs.driver_base + costs.driver_per_node * nodes) / 1e9
    if machines == 1:
        alone = (costs.single_base + costs.single_per_node * nodes) / 1e9
        return {"machine_gb": alone, "received_gb": 0.0, "driver_gb": 0.0, "seconds": 0.0}
    halo = halo_rows(nodes, relationships, machines, crossing)
    rows, entries = nodes / machines, 2 * relationships / machines
    seconds = (
        costs.driver_per_entry * 2 * relationships
        + costs.cpu(entries, halo)
        + received(halo) / NETWORK_BYTES_PER_SECOND
    )
    return {
        "machine_gb": costs.memory(rows, entries, halo, nodes) / 1e9,
        "received_gb": received(halo) / 1e9, "driver_gb": driver, "seconds": seconds,
    }  # fmt: skip


def report(rows: list[dict[str, Any]]) -> None:
    """Print the constants, what they say of points that were not fitted, and a billion."""
    fitted = [row for row in rows if row["point"] not in CHECKED]
    if len(fitted) < 3:
        print("too few points to fit the cost model")
        return
    costs = fit(fitted)
    print(f"\nfitted on {', '.join(row['point'] for row in fitted)}:\n{costs}")
    print("\nmeasured / predicted: worker GB, workers' CPU s, driver GB, one machine GB, halo rows")
    for row in rows:
        found = compare(costs, row)
        mark = "not fitted" if row["point"] in CHECKED else "fitted"
        print(f"{row['point']:22} {mark:10} "
              f"{found['worker_gb']:.2f} / {found['worker_gb_said']:.2f}"
              f"  {found['cpu']:.1f} / {found['cpu_said']:.1f}"
              f"  {found['driver_gb']:.2f} / {found['driver_gb_said']:.2f}"
              f"  {found['single_gb']:.2f} / {found['single_gb_said']:.2f}"
              f"  {found['halo']:,.0f} / {found['halo_said']:,.0f}")  # fmt: skip
    print("\n100,000,000 nodes, 1,000,000,000 relationships, extrapolated:")
    print("graph      machines  GB per machine  GB received  driver GB  seconds of a full pass")
    for kind, crossing in CROSSING.items():
        for machines in MACHINES:
            one = extrapolate(costs, machines, crossing)
            print(f"{kind:10} {machines:8} {one['machine_gb']:15.1f} {one['received_gb']:12.1f} "
                  f"{one['driver_gb']:10.1f} {one['seconds']:10.0f}")  # fmt: skip
    draw(costs, rows)


def draw(costs: Costs, rows: list[dict[str, Any]]) -> None:
    """Draw measured beside predicted memory, and a billion relationships by machines."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for row in rows:
        found, colour = compare(costs, row), "C1" if row["point"] in CHECKED else "C0"
        left.plot(found["worker_gb_said"], found["worker_gb"], "o", color=colour)
    ends = [0.1, max(compare(costs, row)["worker_gb"] for row in rows) * 1.3]
    left.plot(ends, ends, color="0.7")
    left.set(xscale="log", yscale="log", xlabel="predicted, GB", ylabel="measured, GB",
             title="Largest worker (orange: not fitted)")  # fmt: skip
    machines = [2, 4, 8, 16, 32, 64]
    for kind, crossing in CROSSING.items():
        held_gb = [extrapolate(costs, one, crossing)["machine_gb"] for one in machines]
        right.plot(machines, held_gb, "o-", label=kind)
    right.axhline(extrapolate(costs, 1, 0)["machine_gb"], color="0.5", label="one machine")
    right.set(xscale="log", yscale="log", xlabel="machines", ylabel="GB per machine",
              title="A billion relationships, extrapolated")  # fmt: skip
    right.set_xticks(machines, [str(one) for one in machines])
    right.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "partitions.png", dpi=110)


if __name__ == "__main__":
    report(kept("partitions")["rows"])
