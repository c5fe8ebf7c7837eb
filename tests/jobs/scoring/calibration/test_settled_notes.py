"""What runs say of classes that come late."""

from dataclasses import replace

import numpy as np

from ringfence.connector.records import RunCount
from ringfence.connector.store.calibration.known import KnownCount
from ringfence.jobs.scoring.calibration.settled_notes import (
    UNTIL_THEN,
    describe_frozen,
    describe_settled,
)
from ringfence.jobs.scoring.calibration.settled_runs import (
    DAY_NS,
    UsualLabels,
    find_settled,
    runs_within,
)

USUAL = UsualLabels({"mule": 10, "normal": 90})


def runs(count):
    return [RunCount(seq, seq * DAY_NS, 100, "m") for seq in range(1, count + 1)]


def known(seq, lag, label, nodes):
    return KnownCount(seq, label, (seq + lag) * DAY_NS - 1, False, None, nodes)


def both(count, late):
    """Mules are known at the next run, normal accounts `late` runs later."""
    mules = [known(run, 1, "mule", 10) for run in range(1, count + 1)]
    return mules + [known(run, late, "normal", 80) for run in range(1, count + 2 - late)]


def notes(counts, made, answered=(), usual=USUAL):
    return describe_settled(find_settled(counts, made, usual), answered, adapt=True)


def test_before_any_class_is_known_the_promise_rests_on_the_training():
    assert notes([], runs(3)) == [f"no class of an evaluated node is known yet: {UNTIL_THEN}"]
    assert notes([], []) == [f"no class of an evaluated node is known yet: {UNTIL_THEN}"]


def test_runs_that_wait_name_the_class_and_how_long():
    delay, waiting, _ = notes(both(12, 20), runs(12))
    assert delay == (
        f"classes usually come 1 run late; no run of this version is settled yet: {UNTIL_THEN}"
    )
    assert waiting == (
        "12 runs wait for classes that have hardly come: normal (90 % of the nodes trained on); a "
        f"run waits 365 runs at most, and {UNTIL_THEN}"
    )


def test_the_usual_delay_and_the_last_answered_run_are_told():
    settled = find_settled(both(40, 20), runs(40), USUAL)
    assert max(settled.seqs) == 21
    (note,) = describe_settled(settled, settled.seqs, adapt=True)
    assert note == "classes usually come 20 runs late; the level answers runs up to run 21"
    (without,) = describe_settled(settled, settled.seqs, adapt=False)
    assert without.endswith("calibration nodes are of runs up to run 21")


def test_a_class_that_is_known_before_its_node_is_known_to_the_next_run():
    early = [known(run, -5, "normal", 100) for run in range(1, 4)]
    assert find_settled(early, runs(3), USUAL).seqs == {1, 2, 3}


def test_a_class_that_was_never_seen_is_waited_for_a_year_whatever_time_runs_take():
    every_quarter = [RunCount(seq, seq * DAY_NS // 96, 100, "m") for seq in range(1, 201)]
    early = [
        KnownCount(seq, "mule", (seq + 1) * DAY_NS // 96 - 1, False, None, 10)
        for seq in range(1, 201)
    ]
    now, before = (
        find_settled(early, every_quarter, replace(USUAL, by_runs=by_runs))
        for by_runs in (False, True)
    )
    assert (now.runs.limit, now.seqs) == (365 * 96, frozenset())
    assert (before.runs.limit, len(before.seqs) > 100) == (
        2,
        True,
    )  # two days of runs, and forgotten
    assert now.find_early() == {run.seq for run in every_quarter}
    unseen = "never seen since the training: normal (90 % of the nodes trained on); "
    assert (
        unseen + "a run that is known in part waits 35040 runs at most, then it counts without them"
        in (describe_settled(now, (), adapt=True))
    )
    (forgotten,) = (n for n in describe_settled(before, (), adapt=True) if n.startswith(unseen))
    assert "no run waits for them any more" in forgotten


def test_runs_at_one_time_wait_as_long_as_it_takes():
    at_once = [RunCount(seq, DAY_NS, 100, "m") for seq in range(1, 4)]
    seen = [KnownCount(seq, "mule", 0, False, None, 10) for seq in range(1, 4)]
    settled = find_settled(seen, at_once, USUAL)
    assert not settled.seqs
    assert any("a run waits as long as it takes" in n for n in describe_settled(settled, (), True))


def test_a_class_that_is_seen_is_not_called_unseen():
    assert not any("never seen" in note for note in notes(both(40, 20), runs(40)))


def test_a_declared_delay_is_counted_in_runs_by_their_times():
    twice_a_day = np.arange(50) * DAY_NS // 2
    assert runs_within(twice_a_day, 14.0) == 28
    assert runs_within(twice_a_day, None) is None
    assert runs_within(np.zeros(5, np.int64), 14.0) is None


def test_labels_of_a_class_that_the_model_never_saw_hold_nobody_back():
    strange = [known(run, 1, "strange", 97) for run in range(1, 7)]
    assert find_settled(strange, runs(6), USUAL).runs.delay is None
    mixed = [*strange, *(known(run, 1, "normal", 3) for run in range(1, 7))]
    assert find_settled(mixed, runs(6), USUAL).seqs


def test_frozen_calibration_waits_for_none_and_says_which_runs_no_verdict_judges():
    assert describe_frozen(find_settled([], runs(3), USUAL)) == [
        "no class of an evaluated node is known yet: nothing can be judged"
    ]
    (late,) = describe_frozen(find_settled(both(40, 1), runs(40), USUAL))
    assert late == (
        "classes usually come 1 run late; calibration is frozen and waits for none, verdicts are "
        "about runs whose classes have come"
    )
    _, _, early = describe_frozen(find_settled(both(12, 20), runs(12), USUAL))
    assert early == "12 runs are judged by no verdict yet: only early classes of theirs are known"
