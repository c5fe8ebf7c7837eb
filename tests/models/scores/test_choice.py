"""The score that validation nodes favour."""

import numpy as np
import pytest

from ringfence.models.scores import aps, softmax64, tps
from ringfence.models.scores.choice import choose_score


def candidates(nodes_per_class, hard, seed=0):
    """Scores of nodes of three classes; the network hardly knows the last one where it is hard."""
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(3), nodes_per_class)
    logits = rng.normal(size=(len(classes), 3))
    logits[np.arange(len(classes)), classes] += np.where(classes == 2, 0.3 if hard else 2.5, 2.5)
    p = softmax64(logits)
    return {"APS": np.asarray(aps(p, rng.random(len(p)))), "TPS": np.asarray(tps(p))}, classes


def test_a_score_that_leaves_a_class_behind_is_not_chosen():
    scores, classes = candidates(400, hard=True)
    choice = choose_score(scores, classes, 0.1, seed=1)
    tried = {one.score: one for one in choice.trials}
    assert choice.score == "APS"
    assert tried["TPS"].mean_size < tried["APS"].mean_size
    assert tried["TPS"].worst_class < tried["APS"].worst_class - 0.03


def test_few_nodes_of_a_class_do_not_show_that_none_is_left_behind():
    few = choose_score(*candidates(8, hard=False), 0.1, seed=1)
    assert few.score == "APS"


def test_many_nodes_do_and_the_smaller_sets_are_taken():
    assert choose_score(*candidates(2_000, hard=False), 0.1, seed=1).score == "TPS"


def test_a_score_known_to_be_fair_is_left_out_only_where_a_class_is_shown_to_fall():
    scores, classes = candidates(3_000, hard=True)
    falls = choose_score({"APS": scores["APS"], "DAPS": scores["TPS"]}, classes, 0.1, seed=1)
    assert falls.score == "APS"
    scores, classes = candidates(8, hard=False)
    unknown = choose_score({"APS": scores["APS"], "DAPS": scores["TPS"]}, classes, 0.1, seed=1)
    assert unknown.score == "DAPS"  # the same nodes do not show that TPS is fair


def test_what_is_sure_lies_below_what_was_seen():
    trials = choose_score(*candidates(50, hard=True), 0.1, seed=1).trials
    tps_trial = next(one for one in trials if one.score == "TPS")
    assert tps_trial.surely_at_least < tps_trial.worst_class < tps_trial.perhaps_up_to


def test_without_aps_there_is_nothing_to_hold_others_to():
    scores, classes = candidates(20, hard=False)
    with pytest.raises(ValueError, match="no APS"):
        choose_score({"TPS": scores["TPS"]}, classes, 0.1, seed=1)
