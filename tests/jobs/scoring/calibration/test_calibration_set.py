"""Who calibrates a run: the training split, and nodes that became known since."""

import itertools
from dataclasses import replace
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from ringfence.connector.records import KnownNode, Member, RunCount
from ringfence.jobs.scoring.calibration import calibration_set as calibration
from ringfence.jobs.scoring.calibration.calibration_set import choose_calibration
from ringfence.jobs.scoring.calibration.eligibility import Eligibility
from ringfence.jobs.scoring.calibration.settled_runs import ready_runs, settled_at_training
from ringfence.models import hashing
from ringfence.models.calibration.sets.registry import calibration_set_named
from tests.known_nodes import ListedNodes

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


def choose(
    nodes, runs=RUNS, calibration_set="window", window=500, promised=(), base=BASE,
    held_out=frozenset(), **eligible,
):  # fmt: skip
    return choose_calibration(
        base, ListedNodes(nodes), runs, CLASSES, kind=calibration_set_named(calibration_set),
        window_nodes=window, promised=promised, eligible=Eligibility(**{"seed": 1, **eligible}),
        held_out=held_out.intersection,
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


def decided_by(*versions):
    """Eight runs, by these versions in turn."""
    return [replace(run, model=versions[i % len(versions)]) for i, run in enumerate(RUNS)]


def test_nodes_that_another_version_evaluated_calibrate_and_answer_for_nothing():
    chosen = choose(every_run(), decided_by("a", "b"), calibration_set="growing", version="a")
    assert {node.evaluated_in for node in chosen.joining} == {1, 2, 3, 4, 5, 6, 7}
    assert chosen.answered == (1, 3, 5, 7)
    assert chosen.waiting == 0
    assert chosen.others == 30
    frozen = choose(every_run(), decided_by("a", "b"), calibration_set="frozen", version="a")
    assert {node.evaluated_in for node in frozen.joining} == {1, 3, 5, 7}


def test_a_version_that_was_never_in_use_starts_with_what_others_evaluated():
    chosen = choose(every_run(), decided_by("a"), calibration_set="growing", version="new")
    assert len(chosen.members) == len(BASE) + 70 == len(BASE) + chosen.others
    assert (chosen.answered, chosen.waiting) == ((), 0)


def test_nodes_of_the_training_never_join():
    roles = itertools.cycle(["train", "validation", "calibration", "holdout"])
    learnt = [replace(node, role=role) for node, role in zip(known(3, 2), roles, strict=False)]
    rest = [node for node in every_run() if node.evaluated_in != 3]
    shares = {"": {"train": 0.5, "validation": 0.2, "calibration": 0.3}}
    for recorded in ({}, shares):
        chosen = choose([*rest, *learnt], calibration_set="growing", shares=recorded)
        assert {node.evaluated_in for node in chosen.joining} == {1, 2, 4, 5, 6, 7}
        assert len(chosen.members) == len(BASE) + 60


def test_what_becomes_known_late_of_a_run_that_the_training_divided_is_divided_too():
    learnt = [replace(node, role="train") for node in known(3, 2, count=5)]
    late = known(3, 4, count=400, first=50)
    rest = [node for node in every_run() if node.evaluated_in != 3]
    shares = {"train": 0.5, "validation": 0.2, "calibration": 0.3}
    chosen = choose([*rest, *learnt, *late], calibration_set="growing", shares={"": shares})
    joined = [node.node_key for node in chosen.joining if node.evaluated_in == 3]
    drawn = hashing.split([node.node_key for node in late], 1, shares)["calibration"]
    assert joined == [node.node_key for node, own in zip(late, drawn, strict=True) if own]
    assert 80 < len(joined) < 160
    unrecorded = choose([*rest, *learnt, *late], calibration_set="growing")
    assert 3 not in {node.evaluated_in for node in unrecorded.joining}


def test_nodes_of_the_holdout_answer_for_the_level_and_never_calibrate():
    held_out = {"i:1-0", "i:1-1", *(f"i:2-{i}" for i in range(10))}
    chosen = choose(every_run(), calibration_set="growing", held_out=held_out)
    assert held_out <= {node.node_key for node in chosen.joining}
    assert chosen.answered == (1, 2, 3, 4, 5, 6, 7)
    members = {member.node_key for member in chosen.members}
    assert not members & held_out
    assert len(members) == len(BASE) + 70 - len(held_out)
    assert (chosen.joined[1], 2 in chosen.joined) == (8, False)


def test_runs_that_helped_to_choose_the_version_give_it_no_node():
    chosen = choose(every_run(), calibration_set="growing", consulted=frozenset({2, 5}))
    assert {node.evaluated_in for node in chosen.joining} == {1, 3, 4, 6, 7}


def test_calibration_nodes_of_the_training_are_as_new_as_their_evaluation():
    base = [*BASE, *(Member(f"i:6-{i}", "calibration", 0) for i in range(5))]
    drawn = [replace(node, role="calibration") for node in known(6, 2, count=5)]
    rest = [node for node in every_run() if node.evaluated_in < 6]
    chosen = choose([*rest, *drawn], window=15, base=base, version="new")
    assert chosen.joined == {6: 5, 5: 10}


def test_early_classes_of_the_training_wait_until_their_run_is_settled():
    base = [Member(f"s:{i}", "calibration", i % 2) for i in range(120)]
    drawn = [replace(node, role="calibration") for node in known(8, 1, count=5, label="b")]
    own = [*base, *(Member(node.node_key, "calibration", 1) for node in drawn)]
    for calibration_set in ("growing", "window"):
        chosen = choose([*every_run(), *drawn], calibration_set=calibration_set, base=own)
        assert chosen.unsettled == 5
        assert not {one.node_key for one in chosen.members} & {one.node_key for one in drawn}
        settled = [*RUNS, *(RunCount(seq, seq * 100, 10) for seq in (9, 10, 11, 12))]
        later = choose([*every_run(), *drawn], settled, calibration_set, base=own)
        assert later.unsettled == 0
        assert {one.node_key for one in drawn} <= {one.node_key for one in later.members}
    by_itself = choose([*every_run(), *drawn], base=own, promised=[0, 1])
    assert by_itself.unsettled == 0  # each class calibrates itself alone


def test_where_few_others_are_left_early_classes_calibrate():
    drawn = [replace(node, role="calibration") for node in known(8, 1, count=90, label="b")]
    own = [*BASE, *(Member(node.node_key, "calibration", 1) for node in drawn)]
    assert choose(drawn, calibration_set="growing", base=own).unsettled == 0


def test_between_runs_a_run_counts_as_old_as_the_last_run_saw_it():
    counts = ListedNodes(every_run(lag=4)).counts()
    partly = [replace(run, evaluated=20) for run in RUNS]
    assert max(ready_runs(counts, partly)) == 5
    assert max(settled_at_training(counts, partly)) == 4
    assert max(settled_at_training(counts, RUNS)) == 5  # what is known whole is known
    assert settled_at_training([], []) == set()


def histories():
    """Known nodes of up to a dozen runs: any class, any time, joined or not, of a training or not.

    Who took part in a training never joins.
    """
    one = st.tuples(
        st.integers(1, 8),
        st.sampled_from(("a", "a", "a", "b", "c")),
        st.integers(1, 6),
        st.sampled_from((None, 8, 8, 8)),
        st.sampled_from((None, None, None, None, "train", "calibration")),
    )
    return st.lists(one, max_size=120)


@given(
    history=histories(),
    window=st.integers(1, 90),
    promised=st.sampled_from(((), (1,), (0, 1))),
    aside=st.integers(0, 4),
)
def test_what_a_window_can_reach_is_all_that_it_needs(history, window, promised, aside):
    """The same choice as from all joined nodes, of which the newest alone are read."""
    nodes = [
        KnownNode(f"i:{place}", seq, label, (seq + lag) * 100 - 50, (role and None) or joined, role)
        for place, (seq, label, lag, joined, role) in enumerate(history)
    ]
    calibrating = [n for n in nodes if n.role == "calibration" and n.label in CLASSES]
    base = [
        *BASE, *(Member(n.node_key, "calibration", CLASSES.index(n.label)) for n in calibrating)
    ]  # fmt: skip
    held_out = frozenset(f"i:{place}" for place in range(len(nodes)) if place % 5 < aside)
    asked = {"window": window, "promised": promised, "base": base, "held_out": held_out}
    reached = choose(nodes, **asked)
    with mock.patch.object(calibration, "reach_back", read_everything):
        assert reached == choose(nodes, **asked)


def read_everything(known, counts, *_):
    classes = {count.label for count in counts}
    joined = [node for node in known.all_joined() if node.label in classes]
    return sorted(joined, key=lambda node: (node.evaluated_in, node.node_key))


def test_a_full_window_reads_no_run_before_it():
    class Reading(ListedNodes):
        def joined(self, runs, label=None):
            read.update(runs)
            return super().joined(runs, label)

    read = set()
    joined = [replace(node, joined_by=8) for node in every_run()]
    wide = [replace(n, node_key=f"{n.node_key}-{i}") for n in joined for i in range(20)]
    chosen = choose_calibration(
        BASE, Reading(wide), RUNS, CLASSES, kind=calibration_set_named("window"), window_nodes=300,
        promised=(), eligible=Eligibility(seed=1),
    )  # fmt: skip
    assert chosen.joined == {7: 200, 6: 100}
    assert read == {7, 6}
