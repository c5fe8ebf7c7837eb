"""The stream's threshold: the binomial test, its order, and its law."""

import numpy as np
import pytest
from scipy.stats import binom

from ringfence.models.selection.per_stream import CONFIDENCE, PER_STREAM, first_tested
from tests.models.selection.test_per_run import tails


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2, 0.5])
def test_one_of_the_first_tested_references_may_be_wrong(share):
    first = first_tested(share)
    assert binom.cdf(1, first, share) <= 1 - CONFIDENCE < binom.cdf(1, first - 1, share)


def test_a_node_is_listed_where_every_test_down_to_it_rejects():
    known = np.arange(200.0)
    wrong = known < 120
    found = tails(known, wrong, [199.5, 140.5, 100.5, 5.5])
    on = PER_STREAM.shares(found, 4, 0.2) <= 0.2
    assert on.tolist() == [True, True, False, False]
    wrong[-10:] = True  # the first test ends the list, whatever comes below
    on = PER_STREAM.shares(tails(known, wrong, [199.5, 140.5]), 2, 0.2) <= 0.2
    assert not on.any()


def test_with_fewer_references_than_the_first_test_takes_nobody_is_listed():
    found = tails(np.arange(17.0), np.zeros(17), [99.0])
    assert PER_STREAM.shares(found, 1, 0.2).tolist() == [1.0]


def test_a_list_does_not_depend_on_who_else_is_in_the_run():
    rng = np.random.default_rng(2)
    wrong = rng.random(500) < 0.7
    known, new = rng.normal(size=500) + 3 * ~wrong, rng.normal(size=50) + 2
    together = PER_STREAM.shares(tails(known, wrong, new), 50, 0.2)
    alone = [PER_STREAM.shares(tails(known, wrong, [score]), 1, 0.2)[0] for score in new]
    assert together.tolist() == alone


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5])
def test_with_the_references_that_it_needs_it_can_hold_somebody_and_with_fewer_nobody(share):
    """The surest references are right, but for the one that the first test lets be wrong."""
    needed = PER_STREAM.references_needed(0.5, share)
    for right, can in ((needed, True), (needed - 1, False)):
        wrong = np.arange(2 * needed) < 2 * needed - right
        found = tails(np.arange(2.0 * needed), wrong, [2.0 * needed])
        assert bool(PER_STREAM.shares(found, 1, share)[0] <= share) is can
