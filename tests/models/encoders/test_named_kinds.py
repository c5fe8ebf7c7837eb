"""Kinds that a file has to name: numbers and booleans kept as text, lists of ids."""

import json

import numpy as np
import pytest

from ringfence.models.encoders import (
    ColumnChoice,
    TableEncoder,
    fit_table,
    infer_kind,
    propose_kind,
    read_as,
)
from ringfence.models.encoders.kinds import LEAVE
from ringfence.models.encoders.number import NumberEncoder

AMOUNTS = [f"{n}.50" for n in range(100)]
IDS = [[n % 7, 10 + n % 5, 30 + n % 3] for n in range(50)] + [[3]]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (AMOUNTS, "number"),
        ([*AMOUNTS, None, " 1e3 "], "number"),
        ([str(n * n) for n in range(100)], "number"),
        (["yes", "no", "No"] * 20, "boolean"),
        (IDS, "texts"),
    ],
)
def test_what_a_closer_look_shows_has_to_be_named(values, kind):
    proposal = propose_kind(values)
    assert (proposal.kind, proposal.named) == (kind, True)
    assert infer_kind(values).kind != kind  # what a file that names no kind gets, as ever


@pytest.mark.parametrize(
    "values",
    [
        [f"{n:05}" for n in range(0, 9_000, 30)] * 2,  # postcodes
        ["1", "2", "3"] * 20,  # codes: as good as categories
        ["yes"] * 20,
        [*AMOUNTS[:50], *["unknown"] * 50],
        [str(n) for n in range(100)],  # number the nodes
        [[1, 1, 2], [2, 2], [1, 1]] * 20,  # readings, not ids
        [[n, n + 1, 2 * n + 5_000] for n in range(0, 300, 3)] + [[1]],  # ids that nobody shares
        [[0.5, 1.0], [2.5]] * 20,
        ["2026-01-01", "2026-02-01"] * 20,
        [f"note {n}" for n in range(100)],
    ],
)
def test_what_only_looks_alike_stays_what_it_was(values):
    proposal = propose_kind(values)
    assert not proposal.named
    assert proposal.kind in (infer_kind(values).kind, LEAVE)


def test_numbers_kept_as_text_are_encoded_as_numbers_are():
    numbers = [float(text) for text in AMOUNTS]
    as_text = NumberEncoder.fit(AMOUNTS, text=True)
    assert np.array_equal(
        as_text.transform([*AMOUNTS, "n/a"])[:-1], NumberEncoder.fit(numbers).transform(numbers)
    )
    assert as_text.transform(["n/a"]).tolist() == [[0.0, 1.0]]
    assert as_text.transform([3.5]).tolist() == as_text.transform(["3.5"]).tolist()


def test_without_the_option_facts_and_values_are_as_before():
    plain = NumberEncoder.fit([1.0, 3.0])
    assert "text" not in plain.facts()
    assert plain.transform(["3.0"]).tolist() == [[0.0, 1.0]]
    assert NumberEncoder.restore(plain.facts(), {}) == plain


def test_the_option_is_in_the_state_of_a_table():
    columns = {"amount": AMOUNTS, "flag": ["yes", "no"] * 50}
    text = {"text": True}
    table = fit_table(
        columns, {"amount": ColumnChoice("number", text), "flag": ColumnChoice("boolean", text)}
    )
    facts = json.loads(json.dumps(table.to_json()))
    again = TableEncoder.from_json(facts, table.arrays())
    encoded = table.transform(columns)
    assert np.array_equal(again.transform(columns), encoded)
    assert set(encoded[:, table.names.index("flag / value")]) == {1.0, -1.0}


def test_leaks_are_looked_for_among_numbers_not_among_their_texts():
    read = read_as(propose_kind(AMOUNTS), [*AMOUNTS, None])
    assert read[:2] == [0.5, 1.5]
    assert read[-1] is None
    assert read_as(propose_kind(IDS), IDS) is IDS


@pytest.mark.parametrize("value", ["", " ", "1" * 5_000, "\ud800", "٣", "1_000", "0x10", "1e999"])
def test_hostile_texts_are_numbers_or_missing(value):
    encoded = NumberEncoder.fit(AMOUNTS, text=True).transform([value])
    assert np.isfinite(encoded).all()
