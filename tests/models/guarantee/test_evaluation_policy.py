"""Evaluation times follow from creation times and a policy fixed beforehand, and nothing else."""

from __future__ import annotations

import dataclasses
from typing import get_args, get_type_hints

import numpy as np
import pytest
from scipy import stats

from ringfence.jobs.config.conformal import ConformalSettings
from ringfence.models.guarantee.evaluation_policy import (
    LATEST_NS,
    POLICY_KINDS,
    EvaluationPolicy,
    PolicyChanged,
    due_rows,
    require_policy,
)
from ringfence.models.hashing import uniforms

HOUR = 3_600 * 10**9
CREATED = np.array([0, HOUR, 2 * HOUR, 5 * HOUR])
POLICIES = {
    "arrival": EvaluationPolicy.on_arrival(),
    "delay": EvaluationPolicy.after(2 * HOUR),
    "date": EvaluationPolicy.at(3 * HOUR),
}


@pytest.mark.parametrize(
    ("kind", "hours"), [("arrival", [0, 1, 2, 5]), ("delay", [2, 3, 4, 7]), ("date", [3, 3, 3, 5])]
)
def test_each_policy_says_when_a_node_is_due(kind, hours):
    assert (POLICIES[kind].due_at(CREATED) // HOUR).tolist() == hours


def test_random_times_are_uniform_and_each_nodes_own():
    policy, keys = EvaluationPolicy.within(8 * HOUR), [f"i:{n}" for n in range(20_000)]
    created = np.arange(len(keys)) * 1_000
    u = uniforms(keys, 7, "evaluation time")
    ages = policy.due_at(created, u) - created
    assert stats.kstest(ages / (8 * HOUR), "uniform").pvalue > 0.001
    assert ages.min() >= 0
    assert ages.max() < 8 * HOUR
    some = np.array([5, 900, 17])  # a node's time depends on no other node, and on no order
    again = policy.due_at(created[some], uniforms([keys[i] for i in some], 7, "evaluation time"))
    assert (again - created[some]).tolist() == ages[some].tolist()
    fixed = EvaluationPolicy.after(8 * HOUR).due_at(created) - created
    assert stats.kstest(fixed / (8 * HOUR), "uniform").pvalue < 1e-9  # the control


def test_random_times_divide_nodes_into_due_and_waiting_ones():
    policy, u = EvaluationPolicy.within(100), np.array([0.0, 0.5, 0.99])
    split = due_rows(policy, np.array([10, 10, 10]), 60, u)
    assert (split.due.tolist(), split.waiting.tolist(), split.next_ns) == ([0, 1], [2], 109)
    assert len(due_rows(policy, np.array([10, 10, 10]), 110, u).due) == 3
    latest = EvaluationPolicy.within(LATEST_NS).due_at(np.array([HOUR]), np.array([1 - 2**-53]))
    assert latest[0] > HOUR  # no overflow


def test_a_random_time_needs_a_number_per_node():
    with pytest.raises(ValueError, match="for each node"):
        EvaluationPolicy.within(100).due_at(CREATED)


def test_the_configuration_has_every_kind():
    configured = get_type_hints(ConformalSettings)["evaluate"]
    assert get_args(configured) == POLICY_KINDS


def test_a_node_waits_until_the_very_nanosecond():
    policy = EvaluationPolicy.after(10)
    assert due_rows(policy, np.array([5]), 14).due.tolist() == []
    assert due_rows(policy, np.array([5]), 15).due.tolist() == [0]


@pytest.mark.parametrize("kind", list(POLICIES))
def test_every_node_is_due_or_waits_and_once_due_stays_due(kind):
    policy, before = POLICIES[kind], set()
    for now in range(0, 9 * HOUR, HOUR // 2):
        split = due_rows(policy, CREATED, now)
        assert sorted([*split.due, *split.waiting]) == [0, 1, 2, 3]
        assert before <= set(split.due)
        before = set(split.due)
        if split.next_ns is not None:
            assert split.next_ns > now
            assert len(due_rows(policy, CREATED, split.next_ns).due) > len(split.due)
    assert before == {0, 1, 2, 3}


def test_the_time_of_a_node_depends_on_its_own_creation_alone():
    for policy in POLICIES.values():
        together = policy.due_at(CREATED)
        assert together.tolist() == [int(policy.due_at(CREATED[i : i + 1])[0]) for i in range(4)]
        order = np.array([3, 0, 2, 1])
        assert policy.due_at(CREATED[order]).tolist() == together[order].tolist()


def test_nothing_created_is_nothing_due():
    split = due_rows(EvaluationPolicy.on_arrival(), np.array([], dtype=np.int64), 0)
    assert (len(split.due), len(split.waiting), split.next_ns) == (0, 0, None)


def test_a_delay_that_passes_the_end_of_time_waits_for_ever_and_does_not_wrap_around():
    policy = EvaluationPolicy.after(LATEST_NS)
    assert policy.due_at(np.array([HOUR])).tolist() == [LATEST_NS]
    assert due_rows(policy, np.array([HOUR]), 10**18).waiting.tolist() == [0]


def test_times_before_1970_are_times():
    assert EvaluationPolicy.after(3).due_at(np.array([-10])).tolist() == [-7]


def test_equal_policies_share_a_digest_and_different_ones_do_not():
    digests = {policy.digest() for policy in POLICIES.values()}
    assert len(digests) == 3
    assert EvaluationPolicy.after(2 * HOUR).digest() in digests
    assert EvaluationPolicy.after(2 * HOUR + 1).digest() not in digests
    assert EvaluationPolicy.at(2 * HOUR).digest() not in digests


def test_the_digest_is_the_one_recorded_in_the_past():
    recorded = "e780d97fc3b46edfa36a8452b7f86530ffcdd2062f5abd9f081217542dcbee55"
    assert EvaluationPolicy.on_arrival().digest() == recorded


def test_a_policy_changed_after_the_first_set_is_refused():
    recorded = require_policy(POLICIES["delay"], None)
    assert require_policy(EvaluationPolicy.after(2 * HOUR), recorded) == recorded
    with pytest.raises(PolicyChanged, match="carries no guarantee"):
        require_policy(POLICIES["date"], recorded)


def test_a_policy_cannot_be_altered_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError):
        POLICIES["delay"].ns = 0


def test_policies_describe_themselves():
    assert POLICIES["arrival"].describe().endswith("in the first run after its arrival")
    assert POLICIES["delay"].describe().endswith("2:00:00 after its creation")
    assert "at 1970-01-01 03:00:00 UTC" in POLICIES["date"].describe()


@pytest.mark.parametrize(
    ("kind", "ns", "words"),
    [
        ("never", 0, "'never' is unknown; choose one of arrival, delay, date, random"),
        ("delay", -1, "got -1 ns"),
        ("arrival", 5, "arrival takes none"),
        ("date", 2**63, "is from 0 to"),
    ],
)
def test_a_policy_out_of_range_is_refused(kind, ns, words):
    with pytest.raises(ValueError, match=words):
        EvaluationPolicy(kind, ns)
