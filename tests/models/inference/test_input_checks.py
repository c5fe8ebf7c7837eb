"""Arrays that would lead the compiled loops astray are refused, however often they come."""

import gc
from dataclasses import replace

import numpy as np
import pytest

from ringfence.models.inference import input_checks
from ringfence.models.inference.graph import graph_of, with_late

ENDS = np.array([[0, 1, 2], [1, 2, 3]])


def test_a_base_is_looked_at_once_and_its_numbers_are_compared_each_time(monkeypatch):
    graph = graph_of(ENDS, 4)
    looks = []
    look = input_checks._extent
    monkeypatch.setattr(
        input_checks, "_extent", lambda places: looks.append(places) or look(places)
    )
    for new in range(3):
        with_late(graph, np.array([[4], [new]]), 5, version=1)
    assert not any(places is graph.others or places is graph.codes for places in looks)
    with pytest.raises(ValueError, match="others can't be used"):
        replace(graph, size=3, offsets=np.array([0, 1, 3, 6]))  # of four nodes' numbers
    with pytest.raises(ValueError, match="others can't be used"):
        replace(graph, others=graph.others + np.int32(1))  # another array: looked at anew


def test_what_is_remembered_goes_with_its_array():
    gc.collect()
    before = len(input_checks._extents)
    graph = graph_of(ENDS, 4)
    assert len(input_checks._extents) == before + 2
    del graph
    gc.collect()
    assert len(input_checks._extents) == before
