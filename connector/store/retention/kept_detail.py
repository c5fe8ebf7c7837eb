"""The columns `p_values` and `scores` of a prediction after retention: what the rest still needs.

Of the p-values those that the graph shows stay, so that it can be compared and written again, and
the largest one, from which `top_p` follows. Of the scores stays which classes the naive set held
and which one scored best: a class that becomes known or changes later is judged as it would have
been. In both columns a JSON object stands where a list stood:

    p_values  {"1": 0.62, "of": 4}
    scores    {"best": [1], "naive": [1, 3]}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.store.engine import dumps

MAX_CLASSES = 1_000_000  # an edited row must not make a list of any length
NOT_ON_RECORD = math.nan
BEYOND_EXCLUSION = 0.0
"""For a removed p-value where it is compared: it was at most the lowest level of its run."""

_decode = json.JSONDecoder().decode  # json.loads without its checks for bytes and options


def kept_p_values(p_values: NDArray[np.float64], shown: NDArray[np.bool_]) -> list[str]:
    """Return what stays of p-values [nodes, classes], of which the graph shows some.

    >>> kept_p_values(np.array([[0.05, 0.6], [0.01, 0.02]]), np.array([[0, 1], [0, 0]], bool))
    ['{"1":0.6,"of":2}', '{"1":0.02,"of":2}']
    """
    stays = shown.copy()
    stays[np.arange(len(p_values)), p_values.argmax(axis=1)] = True
    texts = []
    for row, places in zip(p_values.tolist(), stays, strict=True):
        kept = {str(place): row[place] for place in np.flatnonzero(places).tolist()}
        texts.append(dumps({**kept, "of": len(row)}))
    return texts


def kept_scores(scores: NDArray[np.float64], threshold_naive: float | None) -> list[str]:
    """Return what stays of scores [nodes, classes]: classes in the naive set, best classes.

    >>> kept_scores(np.array([[-0.9, -0.2]]), -0.5)
    ['{"best":[1],"naive":[1]}']
    """
    best = scores == scores.max(axis=1, keepdims=True)
    naive = np.full(scores.shape, True) if threshold_naive is None else scores >= threshold_naive
    return [
        dumps({"best": np.flatnonzero(top).tolist(), "naive": np.flatnonzero(inside).tolist()})
        for top, inside in zip(best, naive, strict=True)
    ]


def p_values_of(text: str, removed: float = NOT_ON_RECORD) -> tuple[float, ...]:
    """Return the p-values of a prediction, `removed` in place of those that are gone.

    >>> p_values_of("[0.5,0.25]")
    (0.5, 0.25)
    >>> p_values_of('{"1":0.6,"of":2}', BEYOND_EXCLUSION)
    (0.0, 0.6)
    """
    value = _decode(text)
    if not isinstance(value, dict):
        return tuple(value)
    classes = int(value.pop("of"))
    if not 0 <= classes <= MAX_CLASSES:
        raise ValueError(f"p-values of {classes} classes")
    filled = [removed] * classes
    for place, p in value.items():
        if not 0 <= int(place) < classes:
            raise ValueError(f"a p-value of class {place}, of {classes}")
        filled[int(place)] = p
    return tuple(filled)


def scores_of(text: str) -> tuple[float, ...]:
    """Return the scores of a prediction; none where they were removed.

    >>> scores_of("[-0.9,-0.2]"), scores_of('{"best":[1],"naive":[1]}')
    ((-0.9, -0.2), ())
    """
    value = _decode(text)
    return () if isinstance(value, dict) else tuple(value)


def in_naive_set(text: str, place: int, threshold_naive: float | None) -> bool:
    """Say whether the naive set held the class at a place.

    >>> in_naive_set("[-0.9,-0.2]", 1, -0.5), in_naive_set('{"best":[1],"naive":[1]}', 0, -0.5)
    (True, False)
    """
    value: Mapping[str, Sequence[int]] | Sequence[float] = _decode(text)
    if isinstance(value, Mapping):
        return place in value["naive"]
    return threshold_naive is None or value[place] >= threshold_naive


def scored_best(text: str, place: int) -> bool:
    """Say whether no class scored better than the one at a place.

    >>> scored_best("[-0.9,-0.2]", 1), scored_best('{"best":[1],"naive":[]}', 0)
    (True, False)
    """
    value: Mapping[str, Sequence[int]] | Sequence[float] = _decode(text)
    if isinstance(value, Mapping):
        return place in value["best"]
    return value[place] == max(value)


def as_matrix(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return rows of JSON numbers as an array; `ValueError` where they are something else."""
    rows: list[Any] = [_decode(text) for text in texts]
    matrix = np.array(rows, np.float64)
    if matrix.ndim != 2:
        raise ValueError("rows of different lengths")
    return matrix
