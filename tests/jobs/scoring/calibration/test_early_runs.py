"""Runs of which only early classes are known: found from few nodes, and however late the others."""

import numpy as np
import pytest

from ringfence.connector.records import RunCount
from ringfence.connector.store.calibration.known import KnownCount
from ringfence.jobs.scoring.calibration.settled_runs import (
    DAY_NS,
    UsualLabels,
    find_settled,
    is_choice_of_classes,
)
from ringfence.models.calibration.cohort import NEVER, SettledRuns

TRAINED = {"fraud": 50, "a": 150, "b": 150, "c": 150}
SHARES = np.array(list(TRAINED.values())) / 500


def settled(runs, delays, nodes=20, trained=TRAINED, by_runs=False):
    """The record after so many runs, in which each class comes after its own number of runs."""
    runs_on_record = [RunCount(seq, 2 * seq, nodes) for seq in range(1, runs + 1)]
    known = [
        KnownCount(seq, name, 2 * (seq + delays[name]) - 1, False, None, count)
        for seq in range(1, runs + 1)
        for name, count in zip(trained, (2, 6, 6, 6), strict=True)
        if name in delays and seq + delays[name] <= runs + 1
    ]
    return find_settled(known, runs_on_record, UsualLabels(trained, by_runs=by_runs))


@pytest.mark.parametrize("runs", [3, 95, 140])
def test_where_most_classes_were_never_seen_no_run_is_a_basis_of_a_verdict(runs):
    """Nor do they answer for the level, as by the rule of before they did from 90 runs on."""
    record, before = (settled(runs, {"fraud": 1}, by_runs=by_runs) for by_runs in (False, True))
    assert record.find_early() == before.find_early() == set(range(1, runs + 1))
    assert not record.seqs
    assert bool(before.seqs) == (runs > 90)


def test_an_audit_between_two_runs_does_not_judge_the_run_whose_classes_come_by_the_next():
    """Its early class alone is known; it counted as old as the next run will see it, and whole."""
    delays, nodes = {"fraud": 1, "a": 10, "b": 10, "c": 10}, 20
    runs = [RunCount(seq, seq * DAY_NS, nodes) for seq in range(1, 41)]
    known = [
        KnownCount(seq, name, (seq + delays[name]) * DAY_NS - 1, False, None, count)
        for seq in range(1, 41)
        for name, count in zip(TRAINED, (2, 6, 6, 6), strict=True)
        if seq + delays[name] <= 40
    ]
    early = {
        between: find_settled(known, runs, UsualLabels(TRAINED), between=between).find_early()
        for between in (False, True)
    }
    assert early[True] == set(range(31, 41))
    assert 31 not in early[False]  # the control


def test_a_small_class_that_never_comes_holds_verdicts_back_until_runs_wait_for_it_no_longer():
    seen = {"a": 1, "b": 1, "c": 1}
    record = settled(140, seen)
    assert not record.never_seen
    assert record.find_early() == record.waiting == set(range(1, 141))
    before = settled(140, seen, by_runs=True)
    assert before.find_early() <= before.waiting < record.waiting


def test_runs_that_are_known_whole_are_judged_whatever_was_never_seen():
    whole = settled(5, {"fraud": 1, "a": 1}, nodes=8)
    assert whole.never_seen
    assert whole.find_early() == set()


def choice(counts, delays, shares=SHARES):
    nobody = np.zeros(3, bool)
    return is_choice_of_classes(
        np.array(counts), SettledRuns(nobody, nobody, 1, 90, shares, np.array(delays))
    )


@pytest.mark.parametrize(("counts", "delays", "expected"), [
    ([2, 0, 0, 0], [1, NEVER, NEVER, NEVER], True),
    ([0, 1, 0, 0], [NEVER, 1, NEVER, NEVER], False),
    ([7, 0, 0, 0], [1, 14, 14, 14], True),
    ([1, 2, 2, 2], [1, 14, 14, 14], False),
])  # fmt: skip
def test_few_nodes_of_an_early_class_are_enough_and_a_fair_few_are_none(counts, delays, expected):
    assert choice(counts, delays) is expected


def test_fair_draws_of_many_classes_are_seldom_taken_for_a_choice():
    rng, shares = np.random.default_rng(1), np.full(40, 1 / 40)
    drawn = rng.multinomial(60, shares, 100)
    found = [choice(counts, np.where(counts > 0, 1, NEVER), shares) for counts in drawn]
    assert np.mean(found) < 0.4
    # the control: some single class is nearly always left out more often than not
    assert np.mean([(1 - 1 / 40) ** 60 < 0.25 and (counts == 0).any() for counts in drawn]) > 0.9
