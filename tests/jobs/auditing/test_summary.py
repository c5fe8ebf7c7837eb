"""Runs counted together one after the other, beside the straightforward form: all anew each time.

The straightforward form stands here: every prefix of the runs summed from its parts. Rows must be
equal to the bit, whatever runs have: strata or none, no known nodes, weights, alphas of their own.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from ringfence.connector.store.tallies import COUNTS, QUANTITIES, SUMS, Tally
from ringfence.connector.store.thresholds.strata import StratumCounts
from ringfence.jobs.auditing import summary
from ringfence.jobs.auditing.coverage import coverage_rows
from ringfence.jobs.auditing.summary import Summary, summaries, summarise
from ringfence.models.guarantee.selection import ExactSum, MeanDifference
from ringfence.models.guarantee.stratified import JudgedNodes, equivalent_size

RUNS = 25


def straightforward(parts):
    """What some runs come to, from all of them anew."""
    last = parts[-1]
    total = Tally(
        last.seq, last.model, last.rule, last.score, last.alpha, last.options,
        min(part.n_calibration for part in parts),
        min(part.effective_calibration for part in parts),
        last.name,
        {name: sum(part.counts[name] for part in parts) for name in COUNTS},
        {name: running_sum([part.sums[name] for part in parts]) for name in SUMS},
        last.promise, last.calibration_set, last.adapt, last.first, (),
        None if any(part.classes_naive is None for part in parts)
        else running_sum([part.classes_naive for part in parts]),
    )  # fmt: skip
    own = json.loads(last.options).get("classes", {}) if last.promise == "class" else {}
    strata = [run for part in parts for run in part.strata]
    judged = [
        [
            JudgedNodes(
                float(one.n_calibration)
                if one.effective_calibration == one.n_calibration
                else one.effective_calibration,
                one.known,
                own.get(one.class_, last.alpha) if last.adapt else one.level,
            )
            for one in run
        ]
        for run in strata
    ]
    known = sum(one.known for run in strata for one in run)
    whole = bool(known) and known == total.counts["known"]
    alike = total.effective_calibration == total.n_calibration and not last.adapt
    unweighted = alike and last.rule in {"NodeEx", "auto"}
    alone = float(total.n_calibration) if unweighted else total.effective_calibration
    missed = running_sum(
        [one.known * own.get(one.class_, last.alpha) for run in strata for one in run]
    )
    found = [difference(parts, quantity) for quantity in QUANTITIES]
    return Summary(
        total,
        parts[0].seq,
        len(parts),
        round(missed / known, 3) if own and whole else last.alpha,
        equivalent_size(judged) if whole else alone,
        tuple(judged[0]) if whole and len(parts) == 1 else (),
        tuple(sum(side) for side in zip(*comparable(parts), strict=True)) or (0, 0),
        tuple(one for one in found if one is not None),
        [part.counts["known"] for part in parts],
        [part.counts["covered"] for part in parts],
    )


def all_anew(runs):
    return [straightforward(runs[:end]) for end in range(1, len(runs) + 1)]


def running_sum(values):
    total = 0.0
    for value in values:
        total += value
    return total


def comparable(parts):
    sides = [(one.counts["known"], one.counts["evaluated"] - one.counts["known"]) for one in parts]
    return [(known, unknown) for known, unknown in sides if known and unknown]


def difference(parts, quantity):
    """The comparison within runs, as its docstring has it."""
    both = []
    for part in parts:
        known, evaluated, sums = part.counts["known"], part.counts["evaluated"], part.sums
        if 0 < known < evaluated:
            here = known, sums[f"{quantity}_known"], sums[f"{quantity}_known_squared"]
            there = (evaluated - known, sums[f"{quantity}_all"] - here[1],
                     sums[f"{quantity}_all_squared"] - here[2])  # fmt: skip
            both.append((here, there))
    if not both:
        return None
    weights = [here[0] * there[0] / (here[0] + there[0]) for here, there in both]
    means, variances = [], []
    for sides in zip(*both, strict=True):
        each = [total / count for count, total, _ in sides]
        means.append(
            math.fsum(w * mean for w, mean in zip(weights, each, strict=True)) / math.fsum(weights)
        )
        spread = [
            count * max(0.0, squares / count - mean**2)
            for (count, _, squares), mean in zip(sides, each, strict=True)
        ]
        variances.append(math.fsum(spread) / sum(side[0] for side in sides))
    gap, spread = means[0] - means[1], math.sqrt(sum(variances) / 2)
    return MeanDifference(summary.NAMES[quantity], *means, gap / spread)


def made_up(kind, seed=3):
    rng = np.random.default_rng(seed)
    made = []
    for seq in range(1, RUNS + 1):
        evaluated = int(rng.integers(30, 120))
        known = 0 if kind == "gaps" and seq % 4 == 1 else int(rng.integers(1, evaluated + 1))
        covered = int(rng.binomial(known, 0.7 if kind == "late" and seq > 15 else 0.9))
        counts = dict.fromkeys(COUNTS, 1) | {
            "evaluated": evaluated, "known": known, "covered": covered
        }  # fmt: skip
        values = {quantity: rng.gamma(2.0, 1.7, evaluated) for quantity in QUANTITIES}
        sums = {
            f"{quantity}_{side}{'_squared' * (power - 1)}": float(np.sum(of[:end] ** power))
            for quantity, of in values.items()
            for side, end in (("all", evaluated), ("known", known))
            for power in (1, 2)
        }
        parts = rng.multinomial(known, [0.5, 0.3, 0.2])
        strata = tuple(
            StratumCounts(90 + 17 * i, 90 + 17 * i + 0.3 * (kind == "weighted"), 0.1, int(m),
                          int(m), "ab"[i % 2])
            for i, m in enumerate(parts)
        )  # fmt: skip
        one = Tally(seq, "m", "auto", "APS", 0.1, "{}", 200, 200.0, "", counts, sums,
                    strata=(strata,), classes_naive=float(rng.random() * evaluated))  # fmt: skip
        if kind in {"frozen", "gaps", "late"}:
            one = replace(one, strata=((),))
        if kind == "one stratum":
            one = replace(one, strata=((replace(strata[0], known=known),),))
        if kind == "own alphas":
            options = json.dumps({"promise": "class", "classes": {"a": 0.03}})
            one = replace(one, promise="class", options=options, adapt=True)
        if kind == "older" and seq == 9:
            one = replace(one, classes_naive=None, strata=((),))
        made.append(one)
    return made


KINDS = ("frozen", "bands", "gaps", "late", "weighted", "one stratum", "own alphas", "older")


@pytest.mark.parametrize("kind", KINDS)
def test_one_after_the_other_is_all_anew_to_the_bit(kind):
    runs = made_up(kind)
    for end, found in enumerate(summaries(runs), start=1):
        wanted = straightforward(runs[:end])
        assert as_lists(found) == as_lists(wanted), end
        assert as_lists(summarise(runs[:end])) == as_lists(wanted), end


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_straightforward_form(kind, monkeypatch):
    runs = made_up(kind)
    rows = coverage_rows(runs, [replace(one, name="a") for one in runs], (), 4)
    module = "ringfence.jobs.auditing.coverage."
    monkeypatch.setattr(module + "summarise", straightforward)
    monkeypatch.setattr(
        module + "summaries",
        lambda of: [straightforward(of[:end]) for end in range(1, len(of) + 1)],
    )
    assert rows == coverage_rows(runs, [replace(one, name="a") for one in runs], (), 4)


def test_a_sum_that_rounds_on_the_way_would_be_noticed(monkeypatch):
    """The negative control: the sums are such that rounding after every run shows."""

    class Rounded(ExactSum):
        def add(self, addend):
            self._parts = [self.value + addend]

    monkeypatch.setattr("ringfence.models.guarantee.selection.ExactSum", Rounded)
    runs = made_up("bands")
    found = list(summaries(runs))
    assert [as_lists(one) for one in found] != [as_lists(one) for one in all_anew(runs)]


def as_lists(found):
    return replace(found, known=list(found.known), covered=list(found.covered))
