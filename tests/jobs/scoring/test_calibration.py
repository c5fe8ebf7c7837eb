"""Who calibrates a run: the training split, and nodes that became known since."""

import itertools

from ringfence.connector.records import KnownNode, Member, RunCount
from ringfence.jobs.scoring.calibration import choose_calibration

CLASSES = ("a", "b")
BASE = [Member(f"s:{i}", "calibration", i % 2) for i in range(20)]
RUNS = [RunCount(seq, seq * 100, 10) for seq in range(1, 9)]


def known(seq, lag, count=10, joined_by=None, label="a", first=0):
    """Classes of run `seq`, noticed between the runs lag - 1 and lag after it."""
    noticed = (seq + lag) * 100 - 50
    return [
        KnownNode(f"i:{seq}-{i}", seq, label, noticed, joined_by)
        for i in range(first, first + count)
    ]


def choose(nodes, runs=RUNS, calibration_set="window", window=500, promised=()):
    return choose_calibration(
        BASE, nodes, runs, CLASSES, calibration_set=calibration_set, window_nodes=window,
        promised=promised, seed=1,
    )  # fmt: skip


def every_run(lag=2, runs=RUNS):
    last = len(runs)
    nodes = (known(run.seq, lag) for run in runs if run.seq + lag <= last + 1)
    return list(itertools.chain.from_iterable(nodes))


def test_frozen_calibrates_with_the_training_split_alone():
    chosen = choose(every_run(), calibration_set="frozen")
    assert chosen.members == tuple(BASE)
    assert chosen.joined == {}


def test_known_nodes_of_settled_runs_join_and_their_runs_are_answered():
    chosen = choose(every_run(), calibration_set="growing")
    assert {node.evaluated_in for node in chosen.joining} == {1, 2, 3, 4, 5, 6, 7}
    assert chosen.answered == (1, 2, 3, 4, 5, 6, 7)
    assert chosen.waiting == 1
    assert len(chosen.members) == len(BASE) + 70


def test_a_window_keeps_the_newest_by_evaluation_run():
    chosen = choose(every_run(), window=25)
    assert chosen.joined == {7: 10, 6: 10, 5: 5}
    assert len(chosen.members) == 25
    assert not any(member.node_key.startswith("s:") for member in chosen.members)


def test_newest_is_not_by_when_a_class_was_noticed():
    late = known(1, 8, count=3, joined_by=None, first=50)
    chosen = choose([*every_run(), *late], window=20)
    assert set(chosen.joined) == {7, 6}


def test_a_node_that_joined_before_joins_and_answers_no_second_time():
    before = [KnownNode(n.node_key, n.evaluated_in, n.label, n.noticed_ns, 6) for n in known(1, 2)]
    chosen = choose([*before, *known(2, 2)], calibration_set="growing")
    assert {node.evaluated_in for node in chosen.joining} == {2}
    assert chosen.answered == (2,)
    assert chosen.joined == {1: 10, 2: 10}


def test_a_class_that_comes_late_joins_without_answering_again():
    before = [KnownNode(n.node_key, n.evaluated_in, n.label, n.noticed_ns, 6) for n in known(1, 2)]
    chosen = choose([*before, *known(1, 7, count=1, first=90)], calibration_set="growing")
    assert [node.node_key for node in chosen.joining] == ["i:1-90"]
    assert chosen.answered == ()


def test_an_early_class_waits_for_the_others_of_its_run():
    early = [n for run in RUNS for n in known(run.seq, 1, count=1, label="b", first=80)]
    late = every_run(lag=5)
    chosen = choose([*early, *late], calibration_set="growing")
    assert {node.evaluated_in for node in chosen.joining} == {1, 2, 3, 4}


def test_a_class_that_the_model_never_saw_does_not_calibrate():
    strange = known(1, 2, count=3, label="c", first=70)
    chosen = choose([*every_run(), *strange], calibration_set="growing")
    assert len(chosen.members) == len(BASE) + 70


def test_a_promised_class_is_topped_up():
    rare = [n for run in RUNS[:6] for n in known(run.seq, 2, count=1, label="b", first=60)]
    plain = choose([*every_run(), *rare], window=25)
    topped = choose([*every_run(), *rare], window=25, promised=[1])
    assert sum(m.class_index == 1 for m in plain.members) <= 3
    assert sum(m.class_index == 1 for m in topped.members) == 6 + len(BASE) // 2


def test_nobody_known_leaves_the_training_split():
    assert choose([]).members == tuple(BASE)
    assert choose([], runs=[]).waiting == 0
