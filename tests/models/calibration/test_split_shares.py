"""A rare class gives more of its labelled nodes to calibration, and says what it lacks."""

import pytest

from ringfence.models.calibration.split_shares import MAX_SHARE, class_share
from ringfence.models.guarantee.law import smallest_n


def test_a_common_class_keeps_the_configured_share():
    assert class_share(5_000, 0.1, 0.25).share == 0.25


def test_a_rare_class_gets_more_and_never_more_than_the_network_can_spare():
    assert 0.25 < class_share(100, 0.1, 0.25).share < MAX_SHARE
    assert class_share(12, 0.1, 0.25).share == MAX_SHARE


@pytest.mark.parametrize("labelled", [0, 1, 5, 14, 15, 16, 40])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_missing_is_how_many_labelled_nodes_make_the_promise_possible(labelled, alpha):
    found = class_share(labelled, alpha, 0.2)
    enough = class_share(labelled + found.missing, alpha, 0.2)
    assert enough.missing == 0
    assert enough.expected >= smallest_n(alpha) - 1e-9
    if found.missing:
        assert class_share(labelled + found.missing - 1, alpha, 0.2).expected < smallest_n(alpha)
