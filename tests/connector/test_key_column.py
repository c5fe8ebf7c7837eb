"""Keys of some rows are the texts they stand for, and are sorted as Python sorts texts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.connector import key_column
from ringfence.connector.key_column import KeyColumn, key_order, keys_at
from ringfence.connector.mirror.key_index import Keys

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=40), unique=True, max_size=30)


def column(keys, rows):
    raw = [key.encode() for key in keys]
    ends = np.cumsum([len(one) for one in raw], dtype=np.int64)
    return KeyColumn(np.frombuffer(b"".join(raw), np.uint8), ends, np.asarray(rows, np.int64))


@given(TEXTS, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_a_column_is_its_texts_and_sorts_like_them(texts, chance):
    keys = [f"s:{text}" for text in texts]
    rows = list(range(len(keys)))
    chance.shuffle(rows)
    expected = [keys[row] for row in rows]
    found = column(keys, rows)
    assert list(found) == expected == found[:]
    assert keys_at(found, key_order(found)) == sorted(expected)
    assert keys_at(expected, key_order(expected)) == sorted(expected)


def test_keys_that_begin_alike_or_hold_a_nul_or_are_long_keep_their_order():
    alike = ["s:abcdefgh", "s:abcdef", "s:abcdefghi", "s:abcdefg", "s:abcdefg\x01"]
    for more in ([], ["s:abcdef\x00", "s:abcdef\x00\x00"], ["s:" + "ü" * 60, "s:" + "ü" * 59]):
        keys = alike + more
        found = column(keys, range(len(keys)))
        assert keys_at(found, found.order()) == sorted(keys)


def test_a_nul_sorted_as_filling_would_be_seen():
    """The control of the one above: without the check a NUL is taken for the end of a key."""
    keys = ["s:a\x00", "s:a"]
    words = key_column._order_of_words(*(getattr(column(keys, [0, 1]), n) for n in
                                        ("text", "ends", "rows")))  # fmt: skip
    assert words is None
    assert column(keys, [0, 1]).order().tolist() == [1, 0]


@pytest.mark.parametrize("at_once", [1, 3, 1 << 16])
def test_a_mirror_gives_the_keys_of_rows_in_parts(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(key_column, "ROWS_AT_ONCE", at_once)
    keys = Keys.empty(tmp_path)
    names = [*(f"i:{i}" for i in range(20)), "s:größe", "s:"]
    keys.append(names)
    rows = np.array([21, 3, 3, 20, 0])
    found = keys.column(rows)
    assert list(found) == keys.take(rows.tolist()) == [names[row] for row in rows]
    assert (found[1], found[-1], found[1:4]) == ("i:3", "i:0", ["i:3", "i:3", "s:größe"])
    assert keys_at(found, found.order()) == sorted(found)
    assert (keys[2:5], keys[-1], len(found)) == (names[2:5], "s:", 5)
    with pytest.raises(IndexError):
        found[5]
