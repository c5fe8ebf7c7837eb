"""Sets and p-values of a million nodes: ringfence beside TorchCP, MAPIE and crepes, in one run.

    python -m benchmarks.conformal [--nodes 1000000 --classes 10 --calibration 100000 --rounds 5]

Everyone gets the same float32 probabilities on one thread and does the same work: randomised APS
scores of the calibration nodes, the threshold at alpha = 0.1, the sets of all nodes; then p-values
of all classes. Rounds are interleaved, so that a busy machine hits everyone alike. Reported: CPU
time (the least of the rounds, and the median), and the peak of memory beyond the inputs, results
included. Where a library would need hours, a slice is timed and scaled up, and marked with ~.

u is an input here, since a node gets its u once in its life; what hashing it costs is a row of its
own. `a run` is what the product does between the network's outputs and SQL, with 5,000 calibration
nodes, on one thread: `blocks` is what it does, `steps` the same over all rows at a time, and their
bits are compared. It keeps the scores and p-values of all classes on record. TorchCP and MAPIE draw
their u inside. TorchCP is imported without its __init__, which pulls in language models and a
package that has to be compiled.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import ctypes
import gc
import importlib.metadata
import importlib.util
import json
import platform
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / ".types")]
sys.path += [str(ROOT / ".venv" / "bench")]  # where `make bench-conformal` puts TorchCP

from benchmarks.measuring import keep  # noqa: E402
from benchmarks.outputs_to_sets import steps_of_a_run  # noqa: E402
from ringfence.models.conformal.sets import p_values, prediction_sets, threshold  # noqa: E402
from ringfence.models.hashing import uniforms  # noqa: E402
from ringfence.models.scores import aps, aps_true  # noqa: E402

ALPHA = 0.1
TASKS = ("sets", "p-values", "u", "a run")
KEPT = ("task", "name", "scale", "seconds", "peak_mb", "note")


@dataclass(frozen=True, slots=True)
class Data:
    """What everyone is given: the first ``calibration`` nodes calibrate, the others are judged."""

    probabilities: torch.Tensor
    u: np.ndarray
    classes: torch.Tensor
    known: torch.Tensor
    known_u: np.ndarray
    known_classes: torch.Tensor


@dataclass(slots=True)
class Row:
    """One contender at one task."""

    task: str
    name: str
    run: Callable[[], object]
    scale: float = 1.0
    slow: bool = False
    seconds: list[float] = field(default_factory=list)
    peak_mb: float = 0.0
    note: str = ""


def make_data(nodes: int, classes: int, calibration: int, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((nodes + calibration, classes), dtype=np.float32) * 2.0
    probabilities = torch.softmax(torch.from_numpy(logits), dim=1)
    cumulative = probabilities.double().cumsum(dim=1).numpy()
    drawn = (cumulative < rng.random((len(cumulative), 1))).sum(axis=1).clip(0, classes - 1)
    u, true = rng.random(len(drawn)), torch.from_numpy(drawn)
    known, rest = slice(0, calibration), slice(calibration, None)
    return Data(
        probabilities[rest].clone(), u[rest], true[rest],
        probabilities[known].clone(), u[known], true[known],
    )  # fmt: skip


def ours(data: Data) -> list[Row]:
    def calibrate() -> torch.Tensor:
        return aps_true(data.known, data.known_u, data.known_classes)

    def in_steps() -> torch.Tensor:
        scores = aps(data.probabilities, data.u)
        return prediction_sets(scores, threshold(calibrate(), ALPHA))

    scores = aps(data.probabilities, data.u)
    known = calibrate()
    keys = [f"i:{i}" for i in range(len(data.u))]
    return [
        Row("sets", "ringfence, aps + prediction_sets", in_steps),
        Row("p-values", "ringfence, p_values (from scores)", lambda: p_values(known, scores)),
        Row("u", "ringfence, keyed hash of every key", lambda: uniforms(keys, 7, "score")),
    ]


def bare_packages(*names: str) -> bool:
    """Make the modules of packages importable without running their __init__."""
    spec = importlib.util.find_spec(names[0])
    if spec is None or spec.origin is None:
        return False
    for name in names:
        package = types.ModuleType(name)
        package.__path__ = [str(Path(spec.origin).parent.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    return True


def torchcp(data: Data) -> list[Row]:
    if not bare_packages("torchcp", "torchcp.classification"):
        return []
    from torchcp.classification.predictor import SplitPredictor
    from torchcp.classification.score import APS

    device = torch.device("cpu")
    predictor = SplitPredictor(
        APS(score_type="identity"), torch.nn.Identity(), alpha=ALPHA, device=device
    )

    def sets() -> torch.Tensor:
        predictor.calculate_threshold(data.known, data.known_classes)
        return predictor.predict_with_logits(data.probabilities)

    few = max(1, 20_000_000 // (len(data.known) * data.known.shape[1]))

    def slice_of_p() -> torch.Tensor:
        return predictor.predict_p(data.probabilities[:few])

    return [
        Row("sets", "TorchCP", sets),
        Row("p-values", "TorchCP", slice_of_p, len(data.u) / few, slow=True, note=f"{few} nodes"),
    ]


def mapie(data: Data) -> list[Row]:
    from mapie.classification import SplitConformalClassifier
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Passthrough(ClassifierMixin, BaseEstimator):
        """A fitted classifier whose features are its probabilities."""

        classes_ = np.arange(data.known.shape[1])

        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            return X

        def predict(self, X):
            return np.argmax(X, axis=1)

        def __sklearn_is_fitted__(self):
            return True

    test, known, classes = (t.numpy() for t in (data.probabilities, data.known, data.known_classes))

    def sets() -> np.ndarray:
        judge = SplitConformalClassifier(Passthrough(), 1 - ALPHA, "aps", random_state=0)
        judge.conformalize(known, classes)
        options = {"include_last_label": "randomized"}
        return judge.predict_set(test, conformity_score_params=options)[1][:, :, 0]

    return [Row("sets", "MAPIE", sets)]


def crepes(data: Data) -> list[Row]:
    from crepes import ConformalClassifier

    few = 40
    known = -aps_true(data.known, data.known_u, data.known_classes).numpy()
    test = -aps(data.probabilities[:few], data.u[:few]).numpy()
    judge = ConformalClassifier().fit(known)
    scale, note = len(data.u) / few, f"{few} nodes; scores given"
    return [
        Row("sets", "crepes", lambda: judge.predict_set(test, confidence=1 - ALPHA,
            smoothing=False), scale, slow=True, note=note),
        Row("p-values", "crepes", lambda: judge.predict_p(test, smoothing=False), scale,
            slow=True, note=note),
    ]  # fmt: skip


def status_mb(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {name}; this benchmark measures memory on Linux")


def measure_peak(run: Callable[[], object]) -> float:
    """Return the peak of resident memory during a run, beyond what was resident before it."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = status_mb("VmRSS")
    result = run()
    peak = status_mb("VmHWM") - before
    del result
    return max(0.0, peak)


def measure(rows: list[Row], rounds: int) -> None:
    for row in rows:
        row.run()  # compile, import, warm caches
        row.peak_mb = measure_peak(row.run)
    for turn in range(rounds):
        for row in rows:
            if row.slow and turn > 0:
                continue
            gc.collect()
            start = time.process_time()
            row.run()
            row.seconds.append((time.process_time() - start) * row.scale)


def check(data: Data, rows: list[Row]) -> None:
    """Say what the sets of each contender are worth: same promise, similar size."""
    nodes = torch.arange(len(data.u))
    for row in rows:
        if row.task == "sets" and not row.slow:
            found = torch.as_tensor(np.asarray(row.run())).bool()
            covered = found[nodes, data.classes].double().mean().item()
            row.note = f"covers {covered:.4f}, mean size {found.sum(1).double().mean().item():.3f}"
    sets, p = (rows[i].run() for i in range(2))
    if not torch.equal(p > ALPHA, sets):
        raise AssertionError("sets from p-values differ from sets by threshold")


def spell(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds * 1e3:,.1f} ms"
    return f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 3600:,.1f} h"


def table(rows: list[Row]) -> str:
    lines = [
        "| task | who | CPU, best | median | x ringfence | peak MB | |",
        "|---|---|---|---|---|---|---|",
    ]
    first = {row.task: min(row.seconds) for row in reversed(rows) if _is_ours(row)}
    for row in sorted(rows, key=lambda r: TASKS.index(r.task)):
        best, about = min(row.seconds), "~" if row.scale != 1 else ""
        memory = "-" if row.scale != 1 else f"{row.peak_mb:,.0f}"
        lines.append(
            f"| {row.task} | {row.name} | {about}{spell(best)} "
            f"| {about}{spell(statistics.median(row.seconds))} "
            f"| {about}{best / first[row.task]:,.1f} | {memory} | {row.note} |"
        )
    return "\n".join(lines)


def as_kept(row: Row) -> dict[str, object]:
    best, median = min(row.seconds), statistics.median(row.seconds)
    return {"step": row.name, "cpu_ms": best * 1e3, "median_ms": median * 1e3, "mb": row.peak_mb}


def _is_ours(row: Row) -> bool:
    return "ringfence" in row.name or row.task == TASKS[-1]


def machine() -> dict[str, str]:
    names = ("numpy", "torch", "numba", "mapie", "crepes", "torchcp")
    found = {"python": platform.python_version(), "processor": platform.machine()}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--calibration", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--product", action="store_true", help="only what a run does")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    data = make_data(options.nodes, options.classes, options.calibration)
    steps = steps_of_a_run(options.nodes, options.classes, min(options.calibration, 5_000), ALPHA)
    own = [Row(TASKS[-1], name, run) for name, run in steps]
    rows = own if options.product else [
        *ours(data), *torchcp(data), *mapie(data), *crepes(data), *own
    ]  # fmt: skip
    measure(rows, options.rounds)
    if not options.product:
        check(data, rows)
    print(
        f"{options.nodes:,} nodes x {options.classes} classes, {options.calibration:,} calibration"
    )
    print(table(rows))
    if not options.product and not any(row.name == "TorchCP" for row in rows):
        print(
            "TorchCP is not installed. uv pip install --no-deps --require-hashes "
            "--target .venv/bench -r requirements-bench.lock"
        )
    if options.product:
        size = {"nodes": options.nodes, "classes": options.classes}
        keep("outputs_to_sets", [as_kept(row) for row in own], quick=options.nodes < 10**6, **size)
    if options.json:
        size = {k: getattr(options, k) for k in ("nodes", "classes", "calibration", "rounds")}
        kept = [{k: getattr(row, k) for k in KEPT} for row in rows]
        options.json.write_text(json.dumps({**size, **machine(), "rows": kept}, indent=2) + "\n")


if __name__ == "__main__":
    main()
