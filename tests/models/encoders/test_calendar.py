"""Dates, and how long after another date of the same node they are."""

import datetime as dt
import json

import numpy as np
import pytest

from ringfence.models.encoders import ColumnChoice, EncoderRefused, TableEncoder, fit_table
from ringfence.models.encoders.calendar import DateEncoder, days_between
from ringfence.models.encoders.registry import check_options

ORDERED = [dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in range(60)]
SHIPPED = [day + dt.timedelta(days=n % 7) for n, day in enumerate(ORDERED)]
COLUMNS = {"ordered": ORDERED, "shipped": SHIPPED}
CHOICES = {
    "ordered": ColumnChoice("date"),
    "shipped": ColumnChoice("date", {"since": "ordered"}),
}


def test_days_since_another_date_are_two_more_columns():
    table = fit_table(COLUMNS, CHOICES)
    encoded = table.transform(COLUMNS)
    days = encoded[:, table.names.index("shipped / days since ordered")]
    assert np.corrcoef(days, [n % 7 for n in range(60)])[0, 1] == pytest.approx(1)
    plain = fit_table(COLUMNS, {name: ColumnChoice("date") for name in COLUMNS})
    same = [table.names.index(name) for name in plain.names]
    assert np.array_equal(encoded[:, same], plain.transform(COLUMNS))
    assert len(table.names) == len(plain.names) + 2


@pytest.mark.parametrize("gone", COLUMNS)
def test_without_one_of_the_two_the_difference_is_missing(gone):
    """What a question about a column without its value asks."""
    table = fit_table(COLUMNS, CHOICES)
    rest = {name: values for name, values in COLUMNS.items() if name != gone}
    for columns in (rest, rest | {gone: [None] * 60}):
        encoded = table.transform(columns)
        assert set(encoded[:, table.names.index("shipped / days since ordered")]) == {0.0}
        assert set(encoded[:, table.names.index("shipped / no days since ordered")]) == {1.0}


def test_its_state_is_json_and_a_row_has_the_same_bits_alone():
    table = fit_table(COLUMNS, CHOICES)
    again = TableEncoder.from_json(json.loads(json.dumps(table.to_json())), table.arrays())
    whole = again.transform(COLUMNS)
    assert np.array_equal(whole, table.transform(COLUMNS))
    for at in (0, 31):
        alone = again.transform({name: values[at : at + 1] for name, values in COLUMNS.items()})
        assert np.array_equal(alone[0], whole[at])


def test_facts_without_the_option_are_as_before():
    assert set(DateEncoder.fit(ORDERED).facts()) == {"cycles"}


def test_what_cant_be_is_refused_or_missing():
    with pytest.raises(EncoderRefused, match="no column 'paid' was read"):
        fit_table(COLUMNS, {"shipped": ColumnChoice("date", {"since": "paid"})})
    with pytest.raises(EncoderRefused, match="no option 'since'"):
        check_options("time", {"since": "ordered"})
    odd = [("9999-12-31", "0001-01-01"), ("x", ORDERED[0]), (3, None), ([], {})]
    assert np.isnan(days_between(odd)).tolist() == [False, True, True, True]


def test_hours_count_where_both_have_them():
    pair = (dt.datetime(2026, 1, 2, 18), dt.datetime(2026, 1, 2, 6))
    assert days_between([pair, (pair[0], dt.date(2026, 1, 2))]).tolist() == [0.5, 0.0]
