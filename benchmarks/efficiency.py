"""Set sizes of the conformity scores at the same promise, within degree bands, worst class beside.

    python -m benchmarks.efficiency --data DIR [--only cora_ml citeseer] [--splits 3] [--draws 8]

The paper's networks (GCN) and splits on its seven data sets, `DIR/<name>.npz` as for `make
reproduce`. Half of the unseen nodes are there; of these as many as train nodes calibrate, drawn
anew `draws` times per split, and the others are judged on the subgraph of all that are there.
APS with NodeEx is the reference of the paper; every other row of ours is `rule = "auto"`. `auto`
chooses among the scores on validation nodes alone. MAPIE and TorchCP stand beside where they are
installed (`make bench-conformal`). Standard errors are over splits.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.efficiency_others import sets_of_others
from benchmarks.measuring import keep, show
from ringfence.jobs.reproduce.cache import Cache
from ringfence.jobs.reproduce.datasets import Dataset, load
from ringfence.jobs.reproduce.published import ALPHA, TABLE_1
from ringfence.jobs.reproduce.scores import judge_scores
from ringfence.jobs.reproduce.splits import trained_model

OTHERS = "one threshold"
"""Rule of the libraries beside: all nodes compared together."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def measure(data: Dataset, splits: int, draws: int, cache: Cache) -> list[dict[str, Any]]:
    """Return one row per rule and score of a data set."""
    found: dict[tuple[str, str], list[Floats]] = {}
    chosen: list[str] = []
    for split in range(splits):
        record = cache.record(
            f"{data.name}/efficiency-{split}-{draws}",
            partial(_split_record, data, split, draws, cache),
        )
        chosen.append(record["chosen"])
        rows = {(rule, score): np.array(values) for rule, score, values in record["rows"]}
        for key, values in rows.items():
            found.setdefault(key, []).append(values)
        found.setdefault(("auto", "auto"), []).append(rows["auto", record["chosen"]])
    base = np.array(found["auto", "APS"])[:, 0].mean()
    return [
        {
            "data": data.name,
            "rule": rule,
            "score": f"auto ({', '.join(sorted(set(chosen)))})" if score == "auto" else score,
            "covered": round(float(each[:, 1].mean()), 4),
            "mean size": round(float(each[:, 0].mean()), 3),
            "error": round(float(each[:, 0].std() / np.sqrt(max(1, splits - 1))), 3),
            "against APS": round(float(each[:, 0].mean() / base - 1), 3),
            "worst class": round(float(each[:, 2].mean()), 3),
            "spread over classes": round(float(each[:, 3].mean()), 3),
        }
        for (rule, score), values in found.items()
        for each in [np.array(values)]
    ]


def _split_record(data: Dataset, split: int, draws: int, cache: Cache) -> dict[str, Any]:
    """What one split's network gives, as the cache keeps it."""
    model = trained_model(data, split, 0, cache)
    rows, name = judge_scores(data, model, np.random.default_rng(split), draws, _others, OTHERS)
    return {
        "chosen": name,
        "rows": [[rule, score, values.tolist()] for (rule, score), values in rows.items()],
    }


def _others(known: Floats, classes: Ints, due: Floats) -> dict[str, NDArray[np.bool_]]:
    return sets_of_others(known, classes, due, ALPHA)


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean over data sets of size and worst class against APS within bands."""
    base = {row["data"]: row for row in rows if (row["rule"], row["score"]) == ("auto", "APS")}
    kinds = {row["score"].split(" ")[0] for row in rows if row["rule"] == "auto"}
    return [
        {
            "score": kind,
            "data sets": len(own),
            "size against APS": round(float(np.mean([row["against APS"] for row in own])), 3),
            "worst class against APS, largest loss": round(
                max(base[row["data"]]["worst class"] - row["worst class"] for row in own), 3
            ),
        }
        for kind in sorted(kinds)
        for own in [[r for r in rows if r["rule"] == "auto" and r["score"].split(" ")[0] == kind]]
    ]


def main() -> None:
    """Measure, show and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=list(TABLE_1))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument(
        "--cache", type=Path, help="keeps networks and figures of splits for another call"
    )
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.cache or Path(temporary)
        for name in options.only:
            data = load(name, options.data, folder)
            of_data = measure(data, options.splits, options.draws, Cache(folder))
            for row in of_data:
                show(row)
            rows += of_data
    summary = summarise(rows)
    for row in summary:
        show(row)
    quick = set(options.only) != set(TABLE_1)
    keep("efficiency", rows, quick, summary=summary, splits=options.splits, draws=options.draws)


if __name__ == "__main__":
    main()
