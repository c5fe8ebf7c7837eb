"""MAPIE and crepes as independent judges where they are right, and where they are not."""

import numpy as np
import pytest
from crepes import ConformalClassifier
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin

from ringfence.models.conformal.mondrian import class_p_values
from ringfence.models.conformal.rank import rank
from ringfence.models.conformal.sets import (
    p_values,
    prediction_sets,
    sets_from_p_values,
    threshold,
)
from ringfence.models.scores import aps, aps_true, tps, tps_true


class Passthrough(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose features are its probabilities."""

    def __init__(self, classes=5):
        self.classes = classes
        self.classes_ = np.arange(classes)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.asarray(X)

    def predict(self, X):
        return self.classes_[np.argmax(X, axis=1)]

    def __sklearn_is_fitted__(self):
        return True


def draw(n, seed):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(5, 0.4), size=n)
    classes = (probabilities.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 4)
    return probabilities, classes, rng.random(n)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2, 0.31])
def test_mapie_finds_the_same_sets(alpha):
    test, _, _ = draw(400, 99)
    noticed = 0
    for n in (25, 60, 99, 199, 500):
        known, classes, _ = draw(n, n)
        classes[:5] = np.arange(5)  # MAPIE wants to have seen every class
        judge = SplitConformalClassifier(Passthrough(), 1 - alpha, "lac", prefit=True)
        _, theirs = judge.conformalize(known, classes).predict_set(test)
        scores = tps_true(known, classes)
        ours = prediction_sets(tps(test), threshold(scores, alpha))
        assert np.array_equal(ours, theirs[:, :, 0])
        off_by_one = np.sort(scores)[rank(n, alpha)]
        noticed += not np.array_equal(prediction_sets(tps(test), off_by_one), ours)
    assert noticed >= 3  # the control: one rank too many shows


@pytest.mark.parametrize("n", [5, 9, 60, 333])
def test_crepes_finds_the_same_p_values(n):
    known, classes, u = draw(n, n)
    test, _, v = draw(100, 7)
    scores, judged = aps_true(known, u, classes), aps(test, v)
    judge = ConformalClassifier().fit(-scores)
    theirs = judge.predict_p(-judged, smoothing=False)
    ours = p_values(scores, judged)
    assert np.array_equal(ours, theirs)
    assert not np.array_equal(p_values(scores[:-1], judged), theirs)  # the control
    sets = judge.predict_set(-judged, confidence=0.85, smoothing=False).astype(bool)
    assert np.array_equal(sets_from_p_values(ours, 0.15), sets)


def test_crepes_finds_the_same_p_values_with_ties_and_per_class():
    known, classes, _ = draw(80, 3)
    test, _, _ = draw(60, 4)
    scores, judged = tps_true(known.round(1), classes), tps(test.round(1))
    theirs = ConformalClassifier().fit(-scores).predict_p(-judged, smoothing=False)
    assert np.array_equal(p_values(scores, judged), theirs)
    each = class_p_values(scores, classes, judged)
    for y in range(5):
        judge = ConformalClassifier().fit(-scores[classes == y])
        assert np.array_equal(each[:, y], judge.predict_p(-judged[:, y], smoothing=False))


def test_crepes_takes_one_rank_more_where_p_equals_alpha():
    scores = np.arange(9.0)
    p = p_values(scores, scores - 0.5)
    theirs = (
        ConformalClassifier()
        .fit(-scores)
        .predict_set(-(scores[:, None] - 0.5), confidence=0.9, smoothing=False)
    )
    assert p[0] == 0.1
    assert not sets_from_p_values(p, 0.1)[0]  # p > alpha, as l = floor(alpha (n + 1)) has it
    assert theirs[0, 0] == 1  # p >= 1 - confidence, and 1 - 0.9 is less than 0.1 besides
    assert np.array_equal(sets_from_p_values(p, 0.1)[1:], np.ones(8, dtype=bool))
