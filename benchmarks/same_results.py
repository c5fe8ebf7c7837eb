"""Do two demo folders hold the same results? Weights, thresholds, p-values and sets, bit by bit.

A refactoring must change none of them. Make one demo with the code before it and one after it, both
with the same seed, each in an empty folder, then:

    python -m benchmarks.same_results BEFORE AFTER

The audit stores are read by plain SQL, so that folders of earlier versions can be compared too.
Exit 0: all equal; 1: something differs, and it is named.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

RUNS = (
    "SELECT seq, threshold, threshold_node, threshold_edge, threshold_naive FROM run ORDER BY seq"
)
SETS = "SELECT node_key, seq, classes, p_values, scores, covered FROM prediction ORDER BY node_key"
COVERAGE = (
    "SELECT seq, slice, name, evaluated, known, covered, low, high, verdict FROM coverage "
    "ORDER BY seq, slice, name"
)


def differences(before: Path, after: Path) -> list[str]:
    """Name everything that differs between two demo folders."""
    found = [
        f"{what}: {len(one)} rows before, {len(two)} after, {_unequal(one, two)} differ"
        for what, query in {"thresholds": RUNS, "sets": SETS, "coverage": COVERAGE}.items()
        if (one := _rows(before, query)) != (two := _rows(after, query))
    ]
    weights, other = _weights(before), _weights(after)
    if weights.keys() != other.keys():
        return [*found, f"weights: {sorted(weights)} before, {sorted(other)} after"]
    return found + [
        f"weights: {name} differs by up to {np.abs(weights[name] - other[name]).max()}"
        for name in weights
        if not np.array_equal(weights[name], other[name])
    ]


def _unequal(one: list[tuple], two: list[tuple]) -> int:
    return sum(a != b for a, b in zip(one, two, strict=False)) + abs(len(one) - len(two))


def _rows(folder: Path, query: str) -> list[tuple]:
    (path,) = folder.rglob("audit.db")
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def _weights(folder: Path) -> dict[str, np.ndarray]:
    (path,) = folder.rglob("weights.safetensors")
    return load_file(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = differences(given.before, given.after)
    if given.json:
        print(json.dumps({"equal": not found, "differences": found}))
    else:
        print("\n".join(found) or "equal: weights, thresholds, p-values, sets, coverage")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
