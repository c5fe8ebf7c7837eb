"""The verdict on an audit sample: missing classes are counted both ways."""

import numpy as np
import pytest

from ringfence.models.guarantee.law import coverage_band, coverage_p_value
from ringfence.models.guarantee.sample_verdict import describe_sample, judge_sample, sample_bounds
from ringfence.models.guarantee.verdict import AnytimeBound

N, ALPHA = 1_000, 0.1


def verdict(nodes, known, covered, ever=None):
    bound = None if ever is None else AnytimeBound(ever, 0.0)
    return judge_sample(N, nodes, known, covered, ALPHA, over_all_looks=bound).verdict


def test_a_sample_of_known_nodes_is_compared_with_the_exact_law():
    judged = judge_sample(N, 300, 300, 262, ALPHA)
    assert (judged.low, judged.high) == coverage_band(N, 300, ALPHA)
    assert judged.p_value == coverage_p_value(N, 300, 262, ALPHA)
    assert judged.coverage == 262 / 300


@pytest.mark.parametrize("known", [200, 260, 299, 300])
def test_no_missing_class_can_overturn_a_verdict(known):
    """Whatever the missing nodes turn out to be, a verdict that was given stays."""
    for covered in range(known - 70, known + 1, 5):
        said = verdict(300, known, covered)
        ends = {verdict(300, 300, covered + hits) for hits in {0, (300 - known) // 2, 300 - known}}
        assert said == "not enough known yet" or ends == {said}


def test_plain_coverage_of_the_known_would_be_overturned():
    """The control: 230 of 250 known are covered, as promised; if the 50 missing are missed, no."""
    assert verdict(250, 250, 230) == "kept"
    assert verdict(300, 250, 230) == "not enough known yet"
    assert verdict(300, 300, 230) == "watch"


def test_only_a_bound_over_all_looks_says_broken():
    assert verdict(300, 300, 200) == "watch"
    assert verdict(300, 300, 200, ever=1e-6) == "broken"
    assert verdict(300, 300, 200, ever=0.3) == "watch"


def test_the_band_that_is_drawn_is_the_one_that_decided():
    low, high = coverage_band(N, 300, ALPHA)
    for covered in range(301):
        inside = low <= covered / 300 <= high
        judged = judge_sample(N, 300, 300, covered, ALPHA)
        assert judged.verdict == ("kept" if inside else "watch")
        assert judged.raised_by == ("" if inside else "usual band")


def test_watch_is_said_of_no_more_than_5_of_100_samples():
    chances = np.diff([0.0, *(coverage_p_value(N, 300, k, ALPHA) for k in range(301))])
    watched = [verdict(300, 300, k) == "watch" for k in range(301)]
    assert 0.03 < chances[watched].sum() <= 0.05
    too_low = [coverage_p_value(N, 300, k, ALPHA) < 0.05 for k in range(301)]
    above = [k / 300 > coverage_band(N, 300, ALPHA)[1] for k in range(301)]
    assert chances[np.array(too_low) | np.array(above)].sum() > 0.06  # the control: one tail of 5 %


def test_coverage_is_said_only_once_all_are_known():
    part = judge_sample(N, 300, 299, 270, ALPHA)
    assert part.coverage is None
    assert sample_bounds(300, 299, 270) == (0.9, 271 / 300)
    assert "(1 not known yet, counted both ways)" in describe_sample(part, 300, 299, 270, ALPHA)
    few = judge_sample(N, 3, 3, 3, ALPHA)
    assert few.verdict == "not enough known yet"
    assert f"a verdict needs {few.needed} nodes" in describe_sample(few, 3, 3, 3, ALPHA)


def test_more_covered_than_are_known_is_refused():
    with pytest.raises(ValueError, match="each at most the next"):
        judge_sample(N, 10, 5, 6, ALPHA)


def test_a_few_nodes_with_full_sets_keep_no_promise_yet():
    """With eight calibration nodes every set is full at 90 %, so what is covered shows nothing."""
    assert [judge_sample(8, m, m, m, ALPHA).verdict for m in (1, 5, 19)] == [
        "not enough known yet"
    ] * 3
    assert judge_sample(8, 20, 20, 20, ALPHA).verdict == "kept"
