"""Labels of a run of which only early classes are known wait; all others are compared once.

What that does to false alarms is in tests/statistics/test_verdicts_of_late_classes.py.
"""

import numpy as np

from ringfence.jobs.scoring.monitor_order import KnownTimes, choose_new


def nodes_of(*pairs):
    return KnownTimes(*np.array(pairs, np.int64).reshape(-1, 2).T)


def test_without_early_classes_labels_come_as_they_become_known():
    nodes = nodes_of((1, 10), (1, 20), (2, 30))
    step = choose_new(nodes, 15, {}, ())
    assert step.new.tolist() == [False, True, True]
    assert step.reference.tolist() == [True, False, False]
    assert (step.released_ns.tolist(), step.held) == ([10, 20, 30], {})


def test_labels_of_an_early_class_wait_and_then_come_in_one_order():
    early = choose_new(nodes_of((7, 10), (7, 11)), 0, {}, {7})
    assert not early.new.any()
    assert not early.reference.any()
    assert early.held == {7: 0}
    still = choose_new(nodes_of((7, 10), (7, 11), (8, 12)), 11, early.held, {7, 8})
    assert still.held == {7: 0, 8: 11}
    later = choose_new(nodes_of((7, 10), (7, 11), (7, 40), (8, 12)), 12, still.held, {8})
    assert later.new.tolist() == [True, True, True, False]
    assert later.released_ns.tolist() == [40, 40, 40, 12]
    assert later.held == {8: 11}


def test_what_was_compared_before_a_run_had_to_wait_is_not_compared_again():
    before = choose_new(nodes_of((7, 10)), 0, {}, ())
    assert before.new.all()
    waits = choose_new(nodes_of((7, 10), (7, 20)), 10, before.held, {7})
    assert (waits.reference.tolist(), waits.held) == ([True, False], {7: 10})
    later = choose_new(nodes_of((7, 10), (7, 20), (7, 30)), 20, waits.held, ())
    assert later.new.tolist() == [False, True, True]


def test_an_early_run_without_a_new_class_is_not_remembered():
    assert choose_new(nodes_of((1, 10)), 10, {}, {1, 2, 3}).held == {}
