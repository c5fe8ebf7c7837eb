"""How many wrong references a list needs: one less, and the perfect list is refused."""

import numpy as np
import pytest

from ringfence.models.selection.references_needed import references_needed
from tests.models.selection.test_per_run import listed


@pytest.mark.parametrize(("wrong", "right", "share"), [(6, 94, 0.01), (50, 50, 0.1), (90, 10, 0.2)])
def test_a_perfect_list_holds_with_so_many_references_and_not_with_one_less(wrong, right, share):
    needed = references_needed(wrong / 100, share)
    for references, is_held in ((needed, True), (max(needed - 2, 0), False)):
        n_right = round((references + 1) * right / wrong)
        known = np.r_[np.zeros(references), np.ones(n_right)]
        classes = np.r_[np.ones(references, bool), np.zeros(n_right, bool)]
        new = np.r_[np.full(wrong, -1.0), np.full(right, 2.0)]
        ties = np.random.default_rng(0).random(len(known) + len(new))
        assert listed(known, classes, new, share, ties=ties)[wrong:].all() == is_held


def test_three_nodes_of_a_class_clear_nobody_at_one_per_cent():
    assert references_needed(0.06, 0.01) > 3
