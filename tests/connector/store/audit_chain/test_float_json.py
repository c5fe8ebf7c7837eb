"""Numbers that are written many at a time have the text that Python gives each of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.connector.store.audit_chain import float_json
from ringfence.connector.store.audit_chain.float_json import compiled_json_rows, json_rows
from ringfence.connector.store.engine import dumps

ODD = [
    0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 1 / 3, 5e-324, 2.2250738585072014e-308, 2.225073858507201e-308,
    1.7976931348623157e308, 9007199254740992.0, 9007199254740993.0, 1e15, 1e16, 1.2e17,
    9999999999999998.0, 1e-4, 1e-5, 0.00012345, 9.5367431640625e-07, 1e22, 1e23, 8.41e21, 2**-44,
    4.35, 0.3, 2.0**60, 100.0, 120.0, -1.2345678901234567e-300, 5.0e-5, 1e100,
]  # fmt: skip


def same(values):
    table = np.asarray(values, np.float64).reshape(-1, 1)
    assert compiled_json_rows(table) == [dumps(row) for row in table.tolist()]


def test_odd_numbers():
    same(ODD)
    same([2.0**power for power in range(-1074, 1024)])  # where intervals are not symmetric
    same([float(f"1e{power}") for power in range(-323, 309)])
    same(np.nextafter([float(f"1e{power}") for power in range(-300, 309)], 0.0))
    same(np.arange(-500, 500) / 7)


def test_numbers_of_every_size_and_rows_of_several():
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 2**64, 40_000, dtype=np.uint64).view(np.float64)
    same(anything[np.isfinite(anything)])
    scores = -rng.random((5_000, 7)) * 10.0 ** rng.integers(-9, 9, (5_000, 7))
    assert json_rows(scores) == [dumps(row) for row in scores.tolist()]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_numbers(values):
    same(values)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_among_many(bad, monkeypatch):
    monkeypatch.setattr(float_json, "MIN_NUMBERS", 1)
    with pytest.raises(ValueError, match="JSON compliant"):
        json_rows(np.array([[1.0], [bad]]))


def test_a_power_rounded_down_would_be_seen(monkeypatch):
    """The control: the digits rest on the last bit of the powers."""
    high, low = float_json._powers()
    monkeypatch.setattr(float_json, "_powers", lambda: (high, low - np.uint64(1 << 20)))
    values = -np.random.default_rng(0).random((20_000, 1))
    assert compiled_json_rows(values) != [dumps(row) for row in values.tolist()]
