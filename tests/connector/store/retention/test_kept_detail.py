"""What retention leaves of a prediction judges every class as the whole prediction did."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.connector.records import KnownClass
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.labels import OpenPrediction, check_label
from ringfence.connector.store.retention.kept_detail import (
    MAX_CLASSES,
    kept_p_values,
    kept_scores,
    p_values_of,
    scores_of,
)

CLASSES = ("a", "b", "c", "d")
ALPHAS = (0.1, 0.3, 0.02)
GRID = [0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.9]


def texts(p, scores, inside, threshold, shown):
    """A prediction before and after retention, as the texts of its columns."""
    whole = dumps(p), dumps(scores)
    slim = kept_p_values(np.array([p]), shown), kept_scores(np.array([scores]), threshold)
    return whole, (slim[0][0], slim[1][0])


def opened(p_text, score_text, inside, threshold, levels):
    return OpenPrediction(
        "i:1", dumps(inside), score_text, None, threshold, "v", p_text, dumps(ALPHAS), levels
    )


@given(
    p=st.lists(st.sampled_from(GRID), min_size=4, max_size=4),
    scores=st.lists(st.sampled_from([-0.9, -0.5, -0.2]), min_size=4, max_size=4),
    used=st.lists(st.sampled_from([0.02, 0.1, 0.3]), min_size=3, max_size=3),
    threshold=st.sampled_from([None, -0.6, -0.1]),
    nonempty=st.booleans(),
    per_class=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_every_class_is_judged_as_before(p, scores, used, threshold, nonempty, per_class):
    level = dict.fromkeys(CLASSES, used[0]) if per_class else used[0]
    levels = dumps({"used": [level, *used[1:]], "nonempty": nonempty})
    inside = [name for name, value in zip(CLASSES, p, strict=True) if value > used[0]]
    shown = np.array([[value > min(used) for value in p]])
    whole, slim = texts(p, scores, inside, threshold, shown)
    for class_ in (*CLASSES, "never seen"):
        before = check_label(opened(*whole, inside, threshold, levels), KnownClass(class_), CLASSES)
        after = check_label(opened(*slim, inside, threshold, levels), KnownClass(class_), CLASSES)
        assert after == before


def test_what_the_graph_shows_and_the_largest_p_value_stay():
    p = np.array([[0.6, 0.2, 1 / 70, 1 / 30], [1 / 70, 0.04, 1 / 60, 1 / 30]])
    texts_ = kept_p_values(p, p > 0.1)
    kept = [p_values_of(text) for text in texts_]
    assert [[value for value in row if value == value] for row in kept] == [[0.6, 0.2], [0.04]]
    assert all(len(text) < len(dumps(row)) for text, row in zip(texts_, p.tolist(), strict=True))
    assert scores_of(kept_scores(p, 0.1)[0]) == ()


@pytest.mark.parametrize("text", [dumps({"of": MAX_CLASSES + 1}), dumps({"of": 2, "7": 0.1})])
def test_an_edited_text_is_refused_and_takes_no_memory(text):
    with pytest.raises(ValueError, match="of"):
        p_values_of(text)


def test_a_prediction_with_all_its_details_is_read_as_ever():
    assert p_values_of("[0.25,1.0]") == (0.25, 1.0)
    assert json.loads(kept_scores(np.array([[1.0, 1.0]]), None)[0]) == {
        "best": [0, 1],
        "naive": [0, 1],
    }
