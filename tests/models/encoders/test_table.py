"""Tables of encoders: training rows alone, columns that vanish or change, encoders of users."""

import numpy as np
import pytest

from ringfence.models.encoders import ColumnChoice, Encoder, EncoderRefused, fit_table
from ringfence.models.encoders import table as tables

NUMBER = ColumnChoice("number")


class Own(Encoder):
    """A user's own encoder."""

    @classmethod
    def fit(cls, values):
        return cls()

    @classmethod
    def restore(cls, facts, arrays):
        return cls()

    def facts(self):
        return {}

    @property
    def names(self):
        return ("length",)

    def transform(self, values):
        return np.array([[len(str(value))] for value in values], np.float32)


class Batch(Own):
    """One that looks at the rows beside a row."""

    def transform(self, values):
        return super().transform(values) / len(values)


class Infinite(Own):
    """One that overflows."""

    def transform(self, values):
        return super().transform(values) * np.float32(np.inf)


def path(own):
    """The dotted path of a class of this file, which pytest imports under a name of its own."""
    return f"{own.__module__}:{own.__name__}"


@pytest.fixture
def importable(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, Own.__module__, sys.modules.get(__name__) or _this())


def _this():
    import types

    module = types.ModuleType(Own.__module__)
    module.Own, module.Batch, module.Infinite = Own, Batch, Infinite
    return module


def test_only_training_rows_are_fitted_on():
    values = [1.0, 2.0, 3.0, 1e6, 1e6]
    some = fit_table({"a": values}, {"a": NUMBER}, np.array([0, 1, 2]))
    alone = fit_table({"a": values[:3]}, {"a": NUMBER})
    everyone = fit_table({"a": values}, {"a": NUMBER})
    assert some.to_json() == alone.to_json() != everyone.to_json()


def test_a_column_that_is_gone_is_missing_in_every_row():
    table = fit_table({"a": [1.0, 2.0], "b": [1.0, 3.0]}, {"a": NUMBER, "b": NUMBER})
    rows = table.transform({"a": [1.0, 2.0]})
    assert rows[:, table.names.index("b / missing")].tolist() == [1.0, 1.0]
    assert table.transform({}, rows=3).shape == (3, table.width)


def test_a_column_whose_type_changed_is_missing():
    table = fit_table({"a": [1.0, 2.0]}, {"a": NUMBER})
    assert table.transform({"a": ["1.0", [2.0]]})[:, -1].tolist() == [1.0, 1.0]


def test_columns_stand_in_the_order_of_their_names():
    columns = {"b": [1.0, 2.0], "a": [5.0, 7.0]}
    one = fit_table(columns, {"b": NUMBER, "a": NUMBER})
    two = fit_table(dict(reversed(columns.items())), {"a": NUMBER, "b": NUMBER})
    assert one.names == two.names
    np.testing.assert_array_equal(one.transform(columns), two.transform(columns))


def test_a_label_without_columns_has_a_constant():
    assert fit_table({}, {}).transform({}, rows=2).tolist() == [[1.0], [1.0]]


def test_rows_are_encoded_in_steps(monkeypatch):
    values = list(np.random.default_rng(0).normal(size=50))
    table = fit_table({"a": values}, {"a": NUMBER})
    whole = table.transform({"a": values})
    monkeypatch.setattr(tables, "ROWS_PER_STEP", 7)
    np.testing.assert_array_equal(table.transform({"a": values}), whole)


@pytest.mark.usefixtures("importable")
def test_a_users_own_encoder_is_used():
    table = fit_table({"a": ["x", "xyz"]}, {"a": ColumnChoice(path(Own))})
    assert table.transform({"a": ["xy"]}).tolist() == [[1.0, 2.0]]


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize(("own", "words"), [(Batch, "alone"), (Infinite, "not finite")])
def test_a_users_own_encoder_that_breaks_the_rules_is_refused(own, words):
    with pytest.raises(EncoderRefused, match=words):
        fit_table({"a": ["x", "xyz"]}, {"a": ColumnChoice(path(own))})


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (ColumnChoice("colour"), "no column kind is called 'colour'"),
        (ColumnChoice("number", {"bins": 3}), "no option 'bins'"),
        (ColumnChoice("text", {"buckets": 0}), "0 buckets"),
        (ColumnChoice("category", {"categories": 10**6}), "1000000 categories"),
        (ColumnChoice("datetime", {"cycles": ["moon"]}), "no cycle 'moon'"),
        (ColumnChoice("no.such.module:Class"), "could not be imported"),
        (ColumnChoice("json:loads"), "no encoder"),
    ],
)
def test_a_choice_that_cannot_be_used_says_why(choice, words):
    with pytest.raises(EncoderRefused, match=words):
        fit_table({"a": [1.0]}, {"a": choice})


def test_a_column_that_was_not_read_says_which_were():
    with pytest.raises(EncoderRefused, match="no column 'b' was read; there are a"):
        fit_table({"a": [1.0]}, {"b": NUMBER})
