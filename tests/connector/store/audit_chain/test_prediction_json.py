"""Predictions in columns give the bytes that single records give: in SQL, and in the chain."""

import hashlib

import numpy as np
import pytest

from ringfence.connector.prediction_table import PredictionTable, count_sizes
from ringfence.connector.store.audit_chain import prediction_json
from ringfence.connector.store.audit_chain.prediction_json import (
    Digests,
    FloatJsonCache,
    json_blocks,
)
from ringfence.connector.store.engine import dumps

NAMES = ('a "quoted" class', "größe", "c\\d", "], [", "e")


def table(n, seed=0, classes=5, bands=None):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 61, (n, classes)) / 61
    scores = -rng.random((n, classes)) * 10.0 ** rng.integers(-12, 3, (n, classes))
    keys = [f"s:{key}" for key in rng.permutation(n)]
    return PredictionTable(
        keys, NAMES[:classes], p > 0.5, p, scores, rng.integers(0, 99, n), bands
    )  # fmt: skip


def all_rows(predictions, size):
    blocks = (block.columns() for block in json_blocks(predictions, size))
    return [
        dict(zip(one, row, strict=True))
        for one in blocks
        for row in zip(*one.values(), strict=True)
    ]


@pytest.mark.parametrize("size", [1, 7, 5_000])
@pytest.mark.parametrize("classes", [1, 5])
def test_rows_and_digests_are_those_of_the_records(size, classes):
    columns = table(43, classes=classes)
    records = columns.records()
    assert all_rows(columns, size) == all_rows(records, 5_000)
    one, two = Digests(), Digests()
    for block in json_blocks(columns, size):
        one.update(block)
    for block in json_blocks(records):
        two.update(block)
    digests = [(d.payload, d.degrees, d.bands) for d in (one, two)]
    assert digests[0] == digests[1]


def test_texts_and_digest_are_the_canonical_json_that_earlier_runs_hold():
    """The form that the audit chain has had from the start, written out once more."""
    columns = table(20, bands=[None, "b"] * 10)
    records = sorted(columns.records(), key=lambda one: one.node_key)
    rows = all_rows(columns, 8)
    assert [row["node_key"] for row in rows] == [one.node_key for one in records]
    for row, one in zip(rows, records, strict=True):
        assert (row["classes"], row["p_values"], row["scores"]) == (
            dumps(one.classes), dumps(one.p_values), dumps(one.scores),
        )  # fmt: skip
        assert (row["size"], row["top_p"]) == (len(one.classes), max(one.p_values))
        assert (row["degree"], row["band"]) == (one.degree, one.band)
    expected, found = hashlib.sha256(), Digests()
    for one in records:
        expected.update(dumps([one.node_key, one.classes, one.p_values, one.scores]).encode())
    for block in json_blocks(columns, 8):
        found.update(block)
    assert found.payload == expected.hexdigest()


def test_a_score_that_is_no_number_is_refused():
    columns = table(3)
    columns.scores[1, 2] = np.nan
    with pytest.raises(ValueError, match="JSON compliant"):
        list(json_blocks(columns))


def test_sizes_are_counted_the_same_way():
    columns = table(200)
    assert count_sizes(columns) == count_sizes(columns.records())
    assert sum(count_sizes(columns).values()) == 200


@pytest.mark.parametrize("kept", [5, 1_000])
def test_texts_of_recurring_values_are_those_of_json_whatever_came_before(monkeypatch, kept):
    monkeypatch.setattr(prediction_json, "MAX_KEPT_TEXTS", kept)
    rng, texts = np.random.default_rng(1), FloatJsonCache()
    for spread in (3, 5, 4, 10_000, 3, 40):
        values = rng.integers(0, spread, (80, 3)) / 7
        assert texts.rows(values) == [dumps(row) for row in values.tolist()]
        assert len(texts._texts) <= max(kept, 41)


@pytest.mark.parametrize("classes", [1, 8, 9, 64, 65, 130])
def test_sets_of_many_classes_are_told_apart_by_every_one(classes):
    rng = np.random.default_rng(classes)
    names = tuple(f"c{i}" for i in range(classes))
    sets = np.zeros((classes + 2, classes), np.bool_)
    sets[np.arange(classes), np.arange(classes)] = True
    sets[-1] = rng.random(classes) < 0.5
    expected = [dumps([name for name, inside in zip(names, row, strict=True) if inside])
                for row in sets]  # fmt: skip
    assert prediction_json._set_texts(sets, names) == expected
