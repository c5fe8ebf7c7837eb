"""Rules as objects: inside a part nobody is judged by nodes of another part, whatever the rule."""

import numpy as np
import pytest

from ringfence.models.conformal.strata import Stratum
from ringfence.models.rules.base import NodeDegrees, Part, Promise, restrict_strata
from ringfence.models.rules.registry import RULES


@pytest.fixture
def degrees():
    rng = np.random.default_rng(3)
    near, due = rng.integers(1, 30, 400), rng.integers(1, 30, 120)
    return NodeDegrees(near, due, np.bincount(np.concatenate([near, due])))


@pytest.mark.parametrize("name", list(RULES))
def test_a_part_is_judged_by_its_own_calibration_nodes(degrees, name):
    rule, rng = RULES[name], np.random.default_rng(4)
    inside, due = rng.random(400) < 0.4, np.flatnonzero(rng.random(120) < 0.5)
    strata = rule.part_strata(Promise((0.1,), rule), degrees, Part("north", inside, due))
    assert np.sort(np.concatenate([stratum.due for stratum in strata])).tolist() == due.tolist()
    for stratum in strata:
        assert inside[stratum.calibration].all()
        assert stratum.band == "north" or stratum.band.endswith(" in north")


def test_strata_of_a_rule_are_cut_to_a_part():
    low = Stratum("0-4", np.array([0, 2]), np.array([1]), None, np.array([0.5, 1.0]))
    high = Stratum("5+", np.array([1, 3]), np.array([0, 2]), None, None, np.array([0.2, 0.3]))
    part = Part("north", np.array([True, False, False, True]), np.array([2]))
    (only,) = restrict_strata([low, high], part)  # no due node of the part is in the first
    assert (only.band, only.calibration.tolist(), only.due.tolist()) == ("5+ in north", [3], [2])
    assert only.test_weight.tolist() == [0.3]
    (first,) = restrict_strata([low], Part("south", np.array([True] * 4), np.array([1])))
    assert (first.band, first.weights.tolist()) == ("0-4 in south", [0.5, 1.0])


def test_only_bands_count_all_degrees_and_only_edges_need_a_neighbour():
    assert {name for name, rule in RULES.items() if rule.uses_bands} == {"auto"}
    assert {name for name, rule in RULES.items() if rule.needs_neighbours} == {"EdgeEx"}
    assert {name for name, rule in RULES.items() if rule.weighs_nodes} == {"EdgeEx"}
