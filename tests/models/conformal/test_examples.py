"""The examples in the docstrings run and show the numbers they show."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "conformal.sets",
        "conformal.batched_p_values",
        "guarantee.law",
        "hashing",
        "row_shares",
        "conformal.mondrian",
        "conformal.rank",
        "scores.aps",
        "scores.base",
        "scores.daps",
        "scores.outputs",
        "scores.raps",
        "scores.registry",
        "scores.tps",
        "conformal.weights",
    ],
)
def test_the_examples_in_the_docstrings_are_true(name):
    found = doctest.testmod(importlib.import_module(f"ringfence.models.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
