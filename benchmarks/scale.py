"""Time and peak memory of mirror and forward pass from ten thousand nodes to a million and more.

    python -m benchmarks.scale [--quick]

Each size runs in a process of its own, so that its peak of memory is its own: fill a mirror, save
it, load it, one full pass; then 1,000 nodes arrive, and the mirror is loaded, appended to, passed
over and saved as a run does it. A size for which there is too little memory is left out.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measuring import ROOT, available_gb, cpu_seconds, keep, show

SIZES = [10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000]
GB_PER_NODE = 1.5e-6
WIDTH, DEGREE, NEW, BLOCK = 64, 10, 1_000, 50_000


def fill(mirror, rng, nodes):
    from ringfence.connector.mirror import NodeBlock

    for start in range(0, nodes, BLOCK):
        n = min(BLOCK, nodes - start)
        keys = [f"i:{i}" for i in range(mirror.size, mirror.size + n)]
        features = rng.standard_normal((n, WIDTH), dtype=np.float32)
        mirror.add_nodes([NodeBlock(keys, features, [None] * n, np.arange(n), [])])


def link(mirror, rng, sources):
    for start in range(0, len(sources), BLOCK):
        part = sources[start : start + BLOCK]
        ends = rng.integers(0, mirror.size, len(part))
        mirror.adjacency.add(part, ends, 0, mirror.version)
    mirror.add_relationships([])


def raw_mb(nodes: int) -> float:
    """Keys, features, class, creation time, and both ends of each relationship, as plain arrays."""
    return nodes * (8 + WIDTH * 4 + 4 + 8 + DEGREE * 2 * 4) / 1e6


def sage_weights(rng: np.random.Generator, hidden: int = 64, classes: int = 10) -> dict:
    """Weights as training leaves them, made without torch: scoring has none in its memory."""
    shapes = {
        "conv1.lin_l.weight": (hidden, WIDTH), "conv1.lin_r.weight": (hidden, WIDTH),
        "conv1.lin_l.bias": (hidden,), "conv2.lin_l.weight": (classes, hidden),
        "conv2.lin_r.weight": (classes, hidden), "conv2.lin_l.bias": (classes,),
    }  # fmt: skip
    return {name: 0.1 * rng.standard_normal(one, np.float32) for name, one in shapes.items()}


def one_size(nodes: int) -> dict[str, object]:
    from ringfence.connector.mapping import RelationMapping, map_one_label
    from ringfence.connector.mirror import create, load, save
    from ringfence.jobs import inference
    from ringfence.jobs.inference.cache_state import write_state
    from ringfence.jobs.project import memory
    from ringfence.jobs.project.model_files import SavedModel
    from ringfence.jobs.project.network_inputs import Scaling

    mapping = map_one_label("N", "id", "x", "c", "t", relations=[RelationMapping(0, "R", 0)])
    weights = sage_weights(np.random.default_rng(1))
    scaling = Scaling(np.zeros(WIDTH, np.float32), np.ones(WIDTH, np.float32))
    manifest = {"network": "sage", "options": {}, "classes": [str(i) for i in range(10)]}
    model = SavedModel("v", weights, scaling, np.zeros(1), manifest)
    rng = np.random.default_rng(1)
    row: dict[str, object] = {"nodes": nodes, "relationships": nodes * DEGREE}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def passed(mirror, wanted):
            graph = inference.inference_graph(mirror, mapping)
            return inference.outputs_at(folder / "f", model, mirror, mapping, graph, wanted)

        def first():
            mirror = create(folder / "m", "g", WIDTH)
            fill(mirror, rng, nodes)
            link(mirror, rng, np.repeat(np.arange(nodes), DEGREE))
            save(mirror, folder / "m")

        row["fill_seconds"], _ = cpu_seconds(first)
        files = [one for one in (folder / "m").rglob("*") if one.is_file()]
        row["disk_mb"] = sum(one.stat().st_size for one in files) / 1e6
        row["disk_x_raw"] = row["disk_mb"] / raw_mb(nodes)
        row["load_seconds"], mirror = cpu_seconds(lambda: load(folder / "m", "g"))
        calibration = rng.choice(nodes, 2_000, replace=False)
        mirror.advance()
        passed(mirror, calibration)  # compiles
        write_state(folder / "f" / f"v-{mirror.epoch}", {"open": True})  # kept by nobody
        row["full_seconds"], _ = cpu_seconds(lambda: passed(mirror, calibration))
        save(mirror, folder / "m")
        inference.close_tables(folder / "f", model, mirror)
        steps = {}

        def run():
            steps["load"], mirror = cpu_seconds(lambda: load(folder / "m", "g"))
            mirror.advance()
            at = mirror.size

            def append():
                fill(mirror, rng, NEW)
                link(mirror, rng, np.repeat(np.arange(at, at + NEW), DEGREE))

            steps["append"], _ = cpu_seconds(append)
            wanted = np.concatenate([calibration, np.arange(at, at + NEW)])
            steps["forward"], found = cpu_seconds(lambda: passed(mirror, wanted))
            steps["save"], _ = cpu_seconds(lambda: save(mirror, folder / "m"))
            inference.close_tables(folder / "f", model, mirror)
            return found.sentence

        run()  # the first pass over the mapped tables brings them into memory
        row["words"] = run()
        row["run_seconds"] = sum(steps.values())
        row |= {f"run_{name}": value for name, value in steps.items()}
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    need = memory.predict(nodes, nodes * DEGREE, WIDTH)
    row["predicted_mb"] = need.score / 1e6
    row["features_mb"] = (
        nodes * WIDTH * 4 / 1e6
    )  # mapped: counted in the peak, given back on demand
    return row


def exponent(rows: list[dict[str, float]], name: str) -> float:
    """The power of the number of nodes that a cost grows with, fitted on the three largest."""
    last = rows[-3:]
    sizes, costs = np.log([r["nodes"] for r in last]), np.log([r[name] for r in last])
    return float(np.polyfit(sizes, costs, 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one_size(given.one)))
        return
    rows = []
    for nodes in SIZES[:3] if given.quick else SIZES:
        if (free := available_gb()) < nodes * GB_PER_NODE:
            print(f"{nodes:,} nodes would need {nodes * GB_PER_NODE:.0f} GB; {free:.0f} are free")
            continue
        command = [sys.executable, "-m", "benchmarks.scale", "--one", str(nodes)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        show(rows[-1])
        keep("scale", rows, given.quick)
    names = (
        "fill_seconds",
        "load_seconds",
        "full_seconds",
        "run_seconds",
        "run_forward",
        "peak_mb",
    )
    fitted = {name: round(exponent(rows, name), 2) for name in names}
    print("grows with the power of the number of nodes:", fitted)
    keep("scale", rows, given.quick, exponents=fitted)


if __name__ == "__main__":
    main()
