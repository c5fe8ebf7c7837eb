"""The rules that every encoder keeps, run on each kind of the registry with hostile values."""

import datetime as dt
import doctest
import importlib
import json
import math

import neo4j.spatial
import neo4j.time
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from ringfence.models.encoders import ENCODERS, ColumnChoice, TableEncoder, fit_table
from ringfence.models.encoders.base import CAP

ZONE = dt.timezone(dt.timedelta(hours=2))
GOOD = {
    "number": [1.5, 2.5, -4.0, 1e9],
    "integer": [1, 2, 3, 2**62],
    "boolean": [True, False],
    "category": ["a", "b", "a", 3, True],
    "date": [dt.date(2026, 1, 1), neo4j.time.Date(2026, 3, 1), "2026-05-01"],
    "datetime": [
        dt.datetime(2026, 1, 1, 5),
        dt.datetime(2026, 3, 1, 17, 30, tzinfo=ZONE),
        neo4j.time.DateTime(2026, 2, 1, 3, 4, 5),
        "2026-02-01T07:00:00Z",
    ],
    "time": [dt.time(5), neo4j.time.Time(17, 30, 1)],
    "duration": [dt.timedelta(days=3), neo4j.time.Duration(months=2, days=1, seconds=7)],
    "point": [neo4j.spatial.WGS84Point((13.4, 52.5)), neo4j.spatial.WGS84Point((2.3, 48.9))],
    "text": ["to be or not", "", "Be that as it may"],
    "numbers": [[1.0], [1.0, 2.0, 4.5], []],
    "texts": [["a", "b"], [], [1, 2, 3]],
    "vector": [[1.0, 2.0], (3.0, 4.0), np.array([1, 2], np.float32), b"\0\0\x80?\0\0\0@"],
}
HOSTILE = [
    None, math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, 10**400, -(10**400), 2**63, True,
    "", "x" * 5_000, "\ud800", "a\0b", [], [None], [math.nan], [1e308, -1e308], [1, "a"], [[1]],
    (), {}, object(), b"", b"abc", b"\0\0\xc0\x7f", set(), 1j, np.float32("nan"), np.int64(5),
    np.datetime64("NaT"), np.timedelta64("NaT"), dt.date.min, dt.datetime.max, "9999-99-99",
    neo4j.time.Date(9999, 12, 31), neo4j.time.Duration(months=2**40, days=-(2**40)),
    neo4j.spatial.CartesianPoint((math.inf, 1.0)), neo4j.spatial.WGS84Point((1.0, 2.0, 3.0)),
    {"longitude": 1.0, "latitude": 2.0, "srid": 4326}, {"x": "a", "y": None},
]  # fmt: skip
KINDS = sorted(ENCODERS)

plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(max_size=16),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.sampled_from(HOSTILE),
)
hostile = st.one_of(plain, st.lists(plain, max_size=4))


def test_every_kind_has_good_values_to_be_tested_with():
    assert set(GOOD) == set(ENCODERS)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(training=st.lists(hostile, max_size=8), later=st.lists(hostile, min_size=1, max_size=8))
def test_no_input_gives_a_number_that_is_not_finite(kind, training, later):
    """Neither in training nor later; and the state goes through JSON and safetensors."""
    encoder = ENCODERS[kind].fit([*training, *GOOD[kind], *GOOD[kind]])
    values = [*later, *HOSTILE, *GOOD[kind]]
    rows = encoder.transform(values)
    assert rows.dtype == np.float32
    assert rows.shape == (len(values), len(encoder.names))
    assert np.isfinite(rows).all()
    assert np.abs(rows).max(initial=0) <= CAP
    arrays = load(save(encoder.arrays()))
    again = type(encoder).restore(json.loads(json.dumps(encoder.facts())), arrays)
    np.testing.assert_array_equal(again.transform(values), rows)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(values=st.lists(hostile, min_size=1, max_size=20))
def test_a_row_alone_has_the_bits_that_it_has_among_others(kind, values):
    encoder = ENCODERS[kind].fit(GOOD[kind])
    everyone = [*GOOD[kind], *values]
    together = encoder.transform(everyone)
    for place, value in enumerate(everyone):
        np.testing.assert_array_equal(encoder.transform([value])[0], together[place])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 9, 16, 33, 1_000])
def test_numbers_keep_their_bits_in_blocks_of_any_size(size):
    """A library's SIMD loop has a body and a tail: both must give the same logarithm."""
    values = np.random.default_rng(size).lognormal(3, 4, 5_000)
    encoder = ENCODERS["number"].fit(values)
    assert encoder.scale.log
    whole = encoder.transform(values)
    parts = [encoder.transform(values[at : at + size]) for at in range(0, 5_000, size)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_is_seen_and_differs_from_every_value(kind):
    encoder = ENCODERS[kind].fit([*GOOD[kind], *GOOD[kind]])
    rows = encoder.transform([None, *GOOD[kind]])
    assert encoder.names[-1] == "missing"
    assert rows[:, -1].tolist() == [1.0] + [0.0] * len(GOOD[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_training_changes_no_bit(kind):
    if kind == "vector":
        pytest.skip("a long sum per place: the caller gives training rows in the order of keys")
    values = [*GOOD[kind], *GOOD[kind], None]
    one, two = ENCODERS[kind].fit(values), ENCODERS[kind].fit(values[::-1])
    np.testing.assert_array_equal(one.transform(values), two.transform(values))


def test_unseen_and_missing_are_two_things():
    rows = ENCODERS["category"].fit(["a", "a", "b", "b", "c"]).transform(["z", None, "c", "a"])
    assert rows.tolist() == [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0]]


def test_a_million_categories_make_64_columns():
    values = [f"id{number}" for number in range(100_000)] * 2 + ["often"] * 5
    encoder = ENCODERS["category"].fit(values)
    assert len(encoder.names) == 66
    assert encoder.names[0] == "often"
    assert len(json.dumps(encoder.facts())) < 5_000


def test_the_day_of_the_year_needs_two_years_of_training():
    """It would name single days: what it learnt about a storm says nothing about next year's."""
    start = dt.datetime(2013, 1, 1)
    quarter = [start + dt.timedelta(hours=5 * n) for n in range(400)]
    years = [start + dt.timedelta(days=3 * n) for n in range(300)]
    parts = lambda values: {name.split()[0] for name in ENCODERS["datetime"].fit(values).names}  # noqa: E731
    assert parts(quarter) == {"hour", "weekday", "missing"}
    assert "year" in parts(years)
    assert ENCODERS["date"].fit(quarter[:3]).names == ("missing",)


def test_a_skewed_column_is_taken_by_its_logarithm():
    amounts = np.random.default_rng(1).lognormal(3, 2, 4_000)
    assert ENCODERS["number"].fit(amounts).scale.log
    assert not ENCODERS["number"].fit(np.arange(4_000.0)).scale.log


def test_neo4j_and_python_values_of_one_meaning_give_one_row():
    day = ENCODERS["datetime"].fit(GOOD["datetime"], cycles=["hour", "weekday", "year", "month"])
    same = [
        dt.datetime(2026, 3, 1, 17, 30),
        neo4j.time.DateTime(2026, 3, 1, 17, 30),
        np.datetime64("2026-03-01T17:30"),
        "2026-03-01T17:30:00",
    ]
    assert len({row.tobytes() for row in day.transform(same)}) == 1
    lasting = ENCODERS["duration"].fit(GOOD["duration"])
    same = [dt.timedelta(days=2, seconds=5), neo4j.time.Duration(days=2, seconds=5)]
    assert len({row.tobytes() for row in lasting.transform(same)}) == 1


def test_a_point_of_another_system_is_missing():
    encoder = ENCODERS["point"].fit(GOOD["point"])
    assert encoder.transform([neo4j.spatial.CartesianPoint((13.4, 52.5))])[0, -1] == 1.0


def test_an_embedding_of_ten_thousand_numbers_is_encoded():
    values = np.random.default_rng(0).normal(size=(20, 10_000)).astype(np.float32)
    assert ENCODERS["vector"].fit(values).transform(values).shape == (20, 10_001)


@pytest.mark.parametrize(
    "module",
    ["base", "boolean", "calendar", "category", "duration", "kinds", "number", "point", "registry",
     "scale", "table", "text", "vector"],
)  # fmt: skip
def test_the_examples_in_the_docstrings_are_true(module):
    found = doctest.testmod(importlib.import_module(f"ringfence.models.encoders.{module}"))
    assert found.attempted > 0
    assert found.failed == 0


def test_a_table_of_all_kinds_comes_back_from_its_files():
    size = 12
    columns = {f"c {kind}": (GOOD[kind] * size)[:size] for kind in KINDS}
    choices = {f"c {kind}": ColumnChoice(kind) for kind in KINDS}
    table = fit_table(columns, choices, np.arange(6))
    rows = table.transform(columns)
    assert rows.shape == (size, table.width) == (size, len(table.names))
    again = TableEncoder.from_json(
        json.loads(json.dumps(table.to_json())), load(save(table.arrays()))
    )
    np.testing.assert_array_equal(again.transform(columns), rows)
