"""When a run's nodes join calibration."""

import numpy as np
import pytest

from ringfence.models.calibration.cohort import (
    FORMER_WAIT_RUNS,
    MAX_WAIT_DAYS,
    NEVER,
    Labels,
    settle_runs,
    settled_age,
)


def labels(*runs):
    """Places of runs and lags of their classes, from one list of lags per run."""
    of_run = np.repeat(np.arange(len(runs)), [len(lags) for lags in runs])
    return of_run, np.array([lag for lags in runs for lag in lags], np.int64)


def settled(runs, of_run, lags, evaluated=100):
    """Which runs are settled whose classes say nothing and whose nodes are never all known."""
    labels_ = Labels(of_run, np.zeros(len(of_run), np.int64), lags)
    return settle_runs(np.full(runs, evaluated), labels_).ready


def test_a_constant_delay_costs_no_run_of_waiting():
    of_run, lags = labels([2] * 9, [2] * 9, [2] * 9, [2] * 9, [2] * 9, [], [])
    assert settled(7, of_run, lags).tolist() == [True] * 5 + [False] * 2


def test_a_class_that_is_known_early_waits_for_the_others():
    whole, young = [1] + [5] * 9, [1]
    of_run, lags = labels(*[whole] * 6, *[young] * 4)
    assert settled(10, of_run, lags).tolist() == [True] * 6 + [False] * 4


def test_a_few_very_late_classes_hold_nobody_back():
    assert settled_age(*labels([2] * 97 + [300] * 3)) == 2


def test_a_first_run_over_a_backlog_holds_nobody_back():
    backlog = list(range(1, 13)) * 500
    of_run, lags = labels(backlog, *[[2] * 9] * 11)
    assert settled_age(of_run, lags) == 2


def test_a_run_without_a_known_class_does_not_settle():
    of_run, lags = labels([1], [], [1], [1], [1], [1])
    assert settled(6, of_run, lags).tolist() == [True, False, True, True, True, True]


def test_the_first_runs_wait_until_one_is_old_enough_to_tell():
    assert not settled(4, *labels([1], [1], [1])).any()
    assert settled(0, *labels()).tolist() == []


def test_before_any_class_is_known_there_is_no_age():
    assert settled_age(*labels([], [])) == 0
    assert not settled(9, *labels([], [])).any()


def test_young_runs_do_not_hide_that_most_classes_come_later():
    """Of young runs only the early class is known; counted like old ones, they would all settle."""
    of_run, lags = labels([1] + [5] * 9, *[[1]] * 4)
    assert settled(5, of_run, lags).tolist() == [True] + [False] * 4


def test_a_delay_that_grows_is_noticed_though_most_runs_had_a_short_one():
    short, long_, young = [1] * 9, [1] + [10] * 9, [1]
    of_run, lags = labels(*[short] * 100, *[long_] * 40, *[young] * 9)
    assert not settled(149, of_run, lags)[-9:].any()


class Life:
    """Runs of 100 nodes whose classes come some runs later, as the next run sees them.

    shares, delays: of the classes; a delay may be a function of run and of the number of nodes.
    """

    def __init__(self, shares, delays, nodes=100, known=1.0, seed=1):
        self.shares, self.delays, self.nodes, self.known = shares, delays, nodes, known
        self.rng, self.classes, self.known_at = np.random.default_rng(seed), [], []

    def settle(self, runs, usual=None, declared=None, longest=FORMER_WAIT_RUNS):
        while len(self.classes) < runs:
            self.add_run(len(self.classes))
        known = [at <= runs for at in self.known_at[:runs]]
        labels_ = Labels(
            np.repeat(np.arange(runs), [mask.sum() for mask in known]),
            np.concatenate([c[mask] for c, mask in zip(self.classes, known, strict=False)]),
            np.concatenate([(at - i)[known[i]] for i, at in enumerate(self.known_at[:runs])]),
        )
        usual = np.array(self.shares if usual is None else usual)
        return settle_runs(np.full(runs, self.nodes), labels_, usual, declared, longest)

    def add_run(self, run):
        classes = self.rng.choice(len(self.shares), self.nodes, p=self.shares)
        lags = np.array([d(run) if callable(d) else d for d in self.delays])[classes]
        lags = np.where(self.rng.random(self.nodes) < self.known, lags, 10**6)
        self.classes.append(classes)
        self.known_at.append(run + lags)

    def ready(self, runs, **given):
        return np.flatnonzero(self.settle(runs, **given).ready).tolist()


def test_a_run_that_is_known_nearly_whole_settles_at_once_also_among_the_first():
    life = Life([0.6, 0.4], [1, 1], known=0.98)
    assert life.ready(1) == [0]
    assert life.ready(4) == [0, 1, 2, 3]


def test_runs_of_an_early_class_wait_for_the_others_whatever_their_delay():
    life = Life([0.1, 0.3, 0.3, 0.3], [1, 30, 30, 30])
    for runs in (2, 6, 29):
        settled_ = life.settle(runs)
        assert not settled_.ready.any()
        assert settled_.short == (1, 2, 3)
        assert settled_.limit == FORMER_WAIT_RUNS
    assert life.ready(31) == [0, 1]
    assert life.settle(40).delay == 30


def test_without_usual_shares_the_early_class_answers_alone():
    """The negative control: what the shares are for."""
    life = Life([0.1, 0.3, 0.3, 0.3], [1, 30, 30, 30])
    assert len(life.ready(20, usual=[1.0, 0.0, 0.0, 0.0])) > 15


def test_a_small_class_that_comes_late_is_waited_for_though_95_in_100_are_known():
    life = Life([0.5, 0.455, 0.045], [1, 1, 60])
    assert len(life.ready(40)) <= 1  # of the first run alone nobody can tell
    later = life.settle(100)
    assert later.delay == 60
    assert np.flatnonzero(later.ready).max() <= 40


def test_a_class_of_too_few_nodes_to_matter_holds_nobody_back():
    life = Life([0.5, 0.492, 0.008], [7, 7, 365])
    assert life.ready(60) == list(range(54))


def test_a_class_that_comes_too_late_is_left_out_and_named():
    life = Life([0.5, 0.44, 0.06], [7, 7, 120], known=0.9)
    waiting = life.settle(80)
    assert (waiting.short, bool(waiting.ready.any())) == ((2,), False)
    later = life.settle(170)
    assert (later.left_out, later.delay) == ((2,), 7)
    assert np.flatnonzero(later.ready).max() == 163


def test_a_class_that_stops_coming_is_waited_for_twice_as_long_and_then_forgotten():
    life = Life([0.45, 0.45, 0.1], [7, 7, lambda run: 7 if run < 60 else 10**6])
    stopped = life.settle(80)
    assert (stopped.delay, stopped.limit, stopped.short) == (7, 14, (2,))
    assert np.flatnonzero(stopped.ready).max() == 66
    assert stopped.overdue[60:67].any()
    assert stopped.missing == (2,)
    long_after = life.settle(180)
    assert (long_after.short, np.flatnonzero(long_after.ready).max()) == ((), 173)


def test_a_class_that_never_comes_stops_nothing_for_ever():
    life = Life([0.5, 0.5, 0.0], [7, 7, 7], known=0.9)
    usual = [0.4, 0.4, 0.2]
    assert life.ready(80, usual=usual) == []
    assert life.ready(92, usual=usual) == list(range(86))  # two runs have waited for it in vain
    assert max(life.ready(150, usual=usual)) == 143


EARLY_CLASS, LATE_CLASS = ([0.1, 0.3, 0.3, 0.3], [1, 150, 150, 150]), ([0.9, 0.1], [1, 200])


@pytest.mark.parametrize(("shares", "delays"), [EARLY_CLASS, LATE_CLASS])
def test_a_class_that_comes_within_a_year_is_waited_for_however_long_the_others_are_seen(
    shares, delays
):
    life, latest = Life(shares, delays), max(delays)
    for runs in (100, latest - 1):
        assert life.ready(runs, longest=MAX_WAIT_DAYS) == []
        assert life.ready(runs, longest=NEVER) == []
    assert life.ready(latest + 20, longest=MAX_WAIT_DAYS) == list(range(21))
    # the control: the rule of before, which let the classes that were seen answer for all
    assert len(life.ready(latest - 1)) > 40


def test_a_class_of_the_training_that_was_never_seen_since_is_named_however_long_it_is():
    life = Life([0.5, 0.5, 0.0], [1, 1, 1], known=0.9)
    for longest, runs in ((MAX_WAIT_DAYS, 20), (10, 60)):
        settled_ = life.settle(runs, usual=[0.45, 0.45, 0.1], longest=longest)
        assert settled_.unseen == (2,)
        assert settled_.trained.tolist() == [0.45, 0.45, 0.1]
    assert not settled_.usual[2]  # it is waited for no longer
    assert life.settle(60, usual=[0.495, 0.495, 0.01]).unseen == ()
    assert life.settle(60, usual=[0.5, 0.5, 0.0]).unseen == ()
    few = Life([0.5, 0.5, 0.0], [1, 1, 1], nodes=5)
    assert few.settle(3, usual=[0.45, 0.45, 0.1]).unseen == ()  # so few leave it out by chance


def test_a_declared_delay_says_how_long_a_class_that_was_never_seen_may_take():
    life = Life([0.3, 0.7], [1, 150])
    assert len(life.ready(120)) > 0  # without it runs wait 90 runs
    assert life.ready(140, declared=120) == []
    assert life.ready(151, declared=120) == [0, 1]


def test_a_declared_delay_ends_the_wait_for_a_class_that_never_comes():
    life = Life([0.5, 0.5, 0.0], [7, 7, 7], known=0.9)
    usual = [0.4, 0.4, 0.2]
    assert life.settle(19, usual=usual, declared=10).limit == 20
    assert life.ready(19, usual=usual, declared=10) == []
    assert life.ready(20, usual=usual, declared=10) == [0]
    assert max(life.ready(40, usual=usual, declared=10)) == 33  # it is not usual any more
    assert life.ready(40, usual=usual) == []  # undeclared: 90 runs


def test_labels_that_come_once_a_month_settle_all_runs_before():
    life = Life([0.5, 0.5], [lambda run: 30 - run % 30] * 2)
    assert life.ready(29) == []
    assert life.ready(30) == list(range(30))
    assert life.ready(59) == list(range(30))


def test_nodes_that_are_all_of_one_class_settle():
    life = Life([1.0, 0.0, 0.0], [3, 3, 3])
    assert life.ready(12, usual=[0.4, 0.3, 0.3]) == list(range(10))


def test_runs_of_five_nodes_are_pooled():
    life = Life([0.1, 0.9], [1, 14], nodes=5)
    assert life.ready(12) == []
    assert len(life.ready(60)) > 40


def test_a_project_that_is_younger_than_its_delays_settles_nothing():
    life = Life([0.5, 0.5], [400, 400])
    settled_ = life.settle(50, declared=400)
    assert settled_.delay is None
    assert not settled_.ready.any()
