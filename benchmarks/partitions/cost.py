"""What a pass over partitions costs, as a formula: fitted on some points, checked on others.

    python -m benchmarks.partitions.cost

A worker with r owned rows, e list entries and h rows of others in its halo, of a graph with n nodes
(f features, w and v columns of the two kept tables, numbers of 4 bytes):

    held     = r (4 (f + w + v) + 28) + 4 h (w + v + 1) + 4 e + 3 n        bytes
    received = 4 h (w + v + 2)                                            bytes
    memory   = a + b held          CPU = k + c e + d received
    driver's memory = p + q n      driver's CPU = s (all entries)

and the halo where each partition has n / P rows and a share x of E relationships leads anywhere:

    o = n (1 - 1/P)      h = o (1 - exp(-2 E x / (P n)))

Held and received are counted, not fitted; a, b, k, c, d, p, q, s are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.measuring import RESULTS, ROOT, kept
from benchmarks.partitions.graph import CLASSES, CROSSING, HIDDEN, WIDTH

CHECKED = ("community:1000000:4", "uniform:1000000:4", "community:10000000:4")
FIRST, SECOND = HIDDEN, 2 * CLASSES
LARGE_NODES, LARGE_RELATIONSHIPS = 100_000_000, 1_000_000_000
MACHINES = (1, 4, 16, 64)
MIN_POINTS = 3
PAGE = ROOT / "docs" / "scaling.md"
BEGIN, END = "<!-- partitions -->", "<!-- end of partitions -->"
NETWORK_BYTES_PER_SECOND = 1.25e9  # 10 Gbit/s; assumed, never measured here


@dataclass(frozen=True, slots=True)
class Costs:
    """The fitted constants; bytes and seconds."""

    base: float
    per_held: float
    start_cpu: float
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

    def driver_cpu(self, entries: float) -> float:
        """CPU seconds of the driver in a full pass with all `entries` of the graph to send."""
        return self.driver_per_entry * entries

    def cpu(self, entries: float, halo: float) -> float:
        """CPU seconds of a worker in a full pass, the filling of its partition with it."""
        return self.start_cpu + self.per_entry * entries + self.per_received * received(halo)


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
    moved = [[1.0, w["entries"], received(w["halo"])] for w in workers]
    cpu = _fit(moved, [max(w["cpu"], 0.01) for w in workers])
    nodes = [[1.0, d["nodes"]] for d in drivers]
    driver = _fit(nodes, [d["memory"] for d in drivers])
    driver_cpu = _fit([[d["entries"]] for d in drivers], [d["cpu"] for d in drivers])
    single = _fit(nodes, [d["single"] for d in drivers])
    return Costs(base, per_held, *cpu, *driver, *driver_cpu, *single)


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
        "driver_cpu": driver["cpu"], "driver_cpu_said": costs.driver_cpu(driver["entries"]),
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
        costs.driver_cpu(2 * relationships)
        + costs.cpu(entries, halo)
        + received(halo) / NETWORK_BYTES_PER_SECOND
    )
    return {
        "machine_gb": costs.memory(rows, entries, halo, nodes) / 1e9,
        "received_gb": received(halo) / 1e9, "driver_gb": driver, "seconds": seconds,
    }  # fmt: skip


def tables(costs: Costs, rows: list[dict[str, Any]]) -> str:
    """What was measured, the formula beside it, and a billion relationships, as Markdown."""
    lines = [
        "| graph | nodes | partitions | cut | one machine, GB | largest worker, GB | workers and "
        "object store, GB | driver, GB | moved, MB | spilled, MB | differing numbers |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda one: (one["ray"]["nodes"], one["point"])):
        many, said = row["ray"], compare(costs, row)
        together = max(stage["together_mb"] for stage in many["stages"]) / 1e3
        moved = sum(one["moved_mb"] for one in many["stages"] if one["run"] == "full")
        wrong = many["full_differing"] + many["later_differing"]
        lines.append(
            f"| {row['kind']} | {many['nodes']:,} | {row['parts']} | {many['cut']:.1%} | "
            f"{said['single_gb']:.2f} | {said['worker_gb']:.2f} | {together:.2f} | "
            f"{said['driver_gb']:.2f} | {moved:,.0f} | {many['spilled_mb']:,.0f} | {wrong} |"
        )
    lines += [
        "", "| graph | nodes | partitions | | largest worker, GB | formula | workers' CPU s | "
        "formula | driver's CPU s | formula | driver, GB | formula | halo, rows | formula |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in sorted(rows, key=lambda one: (one["ray"]["nodes"], one["point"])):
        said = compare(costs, row)
        mark = "**not fitted**" if row["point"] in CHECKED else "fitted"
        lines.append(
            f"| {row['kind']} | {row['ray']['nodes']:,} | {row['parts']} | {mark} | "
            f"{said['worker_gb']:.2f} | {said['worker_gb_said']:.2f} | {said['cpu']:.0f} | "
            f"{said['cpu_said']:.0f} | {said['driver_cpu']:.0f} | {said['driver_cpu_said']:.0f} | "
            f"{said['driver_gb']:.2f} | {said['driver_gb_said']:.2f} | "
            f"{said['halo']:,.0f} | {said['halo_said']:,.0f} |"
        )
    lines += [
        "", "| 100,000,000 nodes, 1,000,000,000 relationships | machines | GB per machine | GB "
        "received by each | driver, GB | seconds of a full pass |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for kind, crossing in CROSSING.items():
        for machines in MACHINES:
            one = extrapolate(costs, machines, crossing)
            driver = f"{one['driver_gb']:.0f}" if machines > 1 else "–"
            clock = f"{one['seconds']:,.0f}" if machines > 1 else "–"
            lines.append(
                f"| {kind} | {machines} | {one['machine_gb']:.0f} | {one['received_gb']:.1f} | "
                f"{driver} | {clock} |"
            )
    return "\n".join(lines)


def constants(costs: Costs) -> str:
    """The fitted constants in one sentence."""
    return (
        f"a = {costs.base / 1e6:.0f} MB, b = {costs.per_held:.2f}, "
        f"k = {costs.start_cpu:.1f} s, c = {costs.per_entry * 1e9:.0f} ns, "
        f"d = {costs.per_received * 1e9:.1f} ns per byte, "
        f"p = {costs.driver_base / 1e6:.0f} MB, q = {costs.driver_per_node:.0f} bytes, "
        f"s = {costs.driver_per_entry * 1e9:.0f} ns; "
        f"one machine {costs.single_base / 1e6:.0f} MB + {costs.single_per_node:.0f} bytes per node"
    )


def report(rows: list[dict[str, Any]]) -> None:
    """Print the constants, what they say of points that were not fitted, and a billion."""
    fitted = [row for row in rows if row["point"] not in CHECKED]
    if len(fitted) < MIN_POINTS:
        print("too few points to fit the cost model")
        return
    costs = fit(fitted)
    told = f"Fitted: {constants(costs)}.\n\n{tables(costs, rows)}"
    print(f"\n{told}")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{told}\n\n{END}{after}", encoding="utf-8")
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
    right.minorticks_off()
    right.set_yticks([3, 10, 30, 100], ["3", "10", "30", "100"])
    right.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "partitions.png", dpi=110)


if __name__ == "__main__":
    report(kept("partitions")["rows"])
