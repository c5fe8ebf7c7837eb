"""Kinds proposed from values."""

import datetime as dt

import neo4j.spatial
import neo4j.time
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.encoders import ENCODERS, infer_kind
from ringfence.models.encoders.kinds import LEAVE

DAYS = [dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in range(40)]
CASES = {
    "number": [1.5 * n for n in range(40)],
    "integer": [n % 7 for n in range(40)],
    "boolean": [True, False] * 20,
    "category": ["red", "green", "blue", None] * 20,
    "date": DAYS,
    "datetime": [neo4j.time.DateTime(2026, 1, 1 + n, 5) for n in range(28)],
    "time": [dt.time(n % 24, n) for n in range(40)],
    "duration": [neo4j.time.Duration(days=n) for n in range(40)],
    "point": [neo4j.spatial.WGS84Point((n, n)) for n in range(40)],
    "text": [f"a case of some {n} words" for n in range(40)],
    "numbers": [[1.0] * n for n in range(40)],
    "texts": [["a"] * n for n in range(40)],
    "vector": [[1.0, 2.0, n] for n in range(40)],
}


def test_every_kind_is_proposed_by_some_column():
    assert set(CASES) == set(ENCODERS)


@pytest.mark.parametrize("kind", CASES)
def test_a_column_gets_the_kind_of_its_values(kind):
    assert infer_kind(CASES[kind]).kind == kind
    assert infer_kind([None, *CASES[kind]]).kind == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([str(day) for day in DAYS], "date"),
        ([f"{day}T05:00:00Z" for day in DAYS], "datetime"),
        ([f"N{n}" for n in range(200)] * 30, "text"),  # tail numbers: many short texts
        ([1, 2.5] * 20, "number"),
        ([f"N{n:05}" for n in range(100)], LEAVE),
        (list(range(1000, 1100)), LEAVE),
        ([None, None], LEAVE),
        (["x"] * 30, LEAVE),
        ([1, "a"] * 30, LEAVE),
        ([object()] * 3, LEAVE),
    ],
)
def test_other_columns(values, kind):
    assert infer_kind(values).kind == kind
    assert infer_kind(values).reason


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(),
                          st.lists(st.one_of(st.none(), st.integers(), st.text()), max_size=3)),
                max_size=30))  # fmt: skip
def test_whatever_is_proposed_can_be_fitted(values):
    proposal = infer_kind(values)
    if proposal.usable:
        ENCODERS[proposal.kind].fit(values).transform(values)
