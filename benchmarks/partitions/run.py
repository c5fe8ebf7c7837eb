"""The same pass on one machine and over partitions: memory, bytes and time per stage, every bit.

    python -m benchmarks.partitions.run [--quick] [--points community:1000000:4 ...]

A graph's mirror is written directly (64 features, ten relationships per node). One process computes
a full pass and a later one after 1,000 nodes arrived, alone; then a cluster of Ray on this machine
computes both in partitions, and every bit is compared. It shows equality and memory, not speed:
all partitions share the cores of one machine. Then the constants of the cost model are fitted.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measuring import RESULTS, ROOT, available_gb, keep

QUICK = ("community:50000:4",)
POINTS = (
    *QUICK, "community:50000:2", "uniform:200000:4", "community:200000:2", "community:200000:4",
    "community:1000000:2", "community:1000000:4", "uniform:1000000:4", "community:10000000:4",
)  # fmt: skip
GB_PER_NODE = 1.3e-6
MB_PER_NODE_IN_STORE = 1.2e-4
NAME = "partitions"


def measure(point: str, place: Path | None) -> dict[str, Any]:
    """Write, compute alone, compute in partitions; return what each told."""
    kind, nodes, parts = point.split(":")
    store = str(max(256, int(int(nodes) * MB_PER_NODE_IN_STORE)))
    folder = Path(tempfile.mkdtemp(prefix="rf-partitions-", dir=place))
    try:
        told: dict[str, Any] = {"point": point, "kind": kind, "parts": int(parts)}
        for what in ("write", "local", "ray"):
            told[what] = _own_process(what, str(folder), nodes, kind, parts, store)
        return told | {"store_mb": int(store)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _own_process(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.partitions.point", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments[0]} failed:\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(row: dict[str, Any]) -> None:
    """Print the stages of a point, and whether it kept its promises."""
    one, many = row["local"], row["ray"]
    alone = single_peak(row)
    print(f"\n{row['point']}: {one['nodes']:,} nodes, {one['relationships']:,} relationships, "
          f"cut {many['cut']:.1%}, one machine's peak {alone:,.0f} MB")  # fmt: skip
    print("run    stage        s     driver CPU  workers' CPU  moved MB  driver MB  largest worker"
          "  workers + store  with driver")  # fmt: skip
    for stage in many["stages"]:
        print(f"{stage['run']:6} {stage['stage']:12} {stage['seconds']:5.1f} "
              f"{stage['driver_cpu']:11.1f} {sum(stage['worker_cpu']):13.1f} "
              f"{stage['moved_mb']:9,.1f} {stage['driver_mb']:10,.0f} "
              f"{max(stage['worker_mb']):15,.0f} {stage['together_mb']:16,.0f} "
              f"{stage['with_driver_mb']:12,.0f}")  # fmt: skip
    for name in ("full", "later"):
        print(f"{name}: {many[f'{name}_differing']} numbers differ; {many[name]}")
    worker = max(max(stage["worker_mb"]) for stage in many["stages"])
    together = max(stage["together_mb"] for stage in many["stages"])
    print(f"largest worker {worker:,.0f} MB, {worker / alone:.2f} of one machine; "
          f"workers and object store together {together:,.0f} MB at most; "
          f"{many['spilled_mb']:,.0f} MB spilled", flush=True)  # fmt: skip


def single_peak(row: dict[str, Any]) -> float:
    """The most memory that the single machine held, MB."""
    return float(max(stage["driver_mb"] for stage in row["local"]["stages"]))


def known_rows() -> dict[str, dict[str, Any]]:
    """Points that were measured before, by name."""
    path = RESULTS / f"{NAME}.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return {row["point"]: row for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="50,000 nodes alone; nothing is kept")
    parser.add_argument("--points", nargs="+", help="kind:nodes:partitions; others are kept")
    parser.add_argument("--folder", type=Path, help="where mirrors and partitions are written")
    given = parser.parse_args()
    rows = {} if given.quick else known_rows()
    for point in given.points or (QUICK if given.quick else POINTS):
        needed = int(point.split(":")[1]) * GB_PER_NODE
        if available_gb() < needed:
            print(f"{point} would need {needed:.0f} GB; {available_gb():.0f} are free")
            continue
        row = measure(point, given.folder)
        show(row)
        rows = (rows if given.quick else known_rows()) | {point: row}  # as they are by now
        keep(NAME, list(rows.values()), given.quick)
    if not given.quick:
        from benchmarks.partitions import cost

        cost.report(list(rows.values()))


if __name__ == "__main__":
    main()
