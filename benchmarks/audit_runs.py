"""What counting coverage costs by the number of runs on record.

    python -m benchmarks.audit_runs [--quick]

Made-up tallies of runs with some 70 known nodes each, in three bands of degree: a row per run, per
window and per total, with bands, p-values and the bound for who looks daily. No database is asked.
"""

import argparse

import numpy as np

from benchmarks.measuring import cpu_seconds, keep, show
from ringfence.connector.store.tallies import COUNTS, QUANTITIES, Tally
from ringfence.connector.store.thresholds.strata import StratumCounts
from ringfence.jobs.auditing.coverage import coverage_rows

EVALUATED = 100
WINDOW = 10
SIZES = (100, 1_000, 10_000)


def make_tallies(runs: int, seed: int = 0) -> list[Tally]:
    rng = np.random.default_rng(seed)
    return [_tally(seq, rng) for seq in range(1, runs + 1)]


def _tally(seq: int, rng: np.random.Generator) -> Tally:
    known = int(rng.integers(50, 90))
    counts = dict.fromkeys(COUNTS, 0) | {
        "evaluated": EVALUATED, "known": known, "covered": int(rng.binomial(known, 0.9))
    }  # fmt: skip
    values = {name: rng.gamma(2.0, 1.5, EVALUATED) for name in QUANTITIES}
    sums = {
        f"{name}_{side}{'_squared' * (power - 1)}": float(np.sum(of[:end] ** power))
        for name, of in values.items()
        for side, end in (("all", EVALUATED), ("known", known))
        for power in (1, 2)
    }
    strata = tuple(
        StratumCounts(120 + 20 * place, 120.0 + 20 * place, 0.1, int(nodes), int(nodes))
        for place, nodes in enumerate(rng.multinomial(known, [1 / 3] * 3))
    )
    return Tally(seq, "m", "auto", "APS", 0.1, "{}", 420, 420.0, "", counts, sums, strata=(strata,),
                 classes_naive=2.0 * EVALUATED)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 1,000 runs")
    quick = parser.parse_args().quick
    rows = []
    for runs in SIZES[:2] if quick else SIZES:
        tallies = make_tallies(runs)
        seconds, counted = cpu_seconds(lambda given=tallies: coverage_rows(given, (), (), WINDOW))
        known = sum(tally.counts["known"] for tally in tallies)
        rows.append(
            {
                "runs": runs,
                "known": known,
                "rows": len(counted),
                "seconds": round(seconds, 2),
                "ms_per_row": round(1000 * seconds / len(counted), 2),
            }
        )
        show(rows[-1])
    keep("audit_runs", rows, quick)


if __name__ == "__main__":
    main()
