"""A node's key as text that keeps its type: 1, "1" and 1.0 are three different nodes.

A key can be used again: its node is deleted, and another one gets it. The *record's key* tells the
nodes of one key apart by the incarnation's number before the typed key: the first node is ``i:7``,
the next ``1@i:7``, then ``2@i:7``. Typed keys begin with a letter, so the two can't be confused.
"""

from __future__ import annotations

import re

from ringfence.connector.errors import GraphError

Key = str | int | float

RECORD_KEY = re.compile(r"(\d{1,9}@)?[isf]:")
MAX_KEY_CHARS = 512  # of a typed key; longer ones don't fit a PostgreSQL index with room to spare


def encode_key(value: object) -> str:
    """Return the typed text of a key property: ``i:1``, ``s:1`` or ``f:1.0``.

    Text is kept code point by code point (NFC and NFD stay apart). NUL is refused because
    PostgreSQL can't store it, booleans and anything else because they are no meaningful keys.

    >>> encode_key(1), encode_key("1"), encode_key(1.0)
    ('i:1', 's:1', 'f:1.0')
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise GraphError(found=f"a key of type {type(value).__name__}", needed="text or a number")
    if isinstance(value, str):
        if "\x00" in value:
            raise GraphError(found="a key that holds a NUL character", needed="text without NUL")
        return f"s:{value}"
    if isinstance(value, int):
        return f"i:{value}"
    if value != value or value in (float("inf"), float("-inf")):
        raise GraphError(found=f"the key {value}", needed="a finite number")
    return f"f:{value!r}"


def decode_key(key: str) -> Key:
    """Return the property value that `encode_key` made `key` from.

    A record's key gives the value that all nodes of that key share.

    >>> decode_key("i:1"), decode_key("s:i:1"), decode_key("f:0.5"), decode_key("2@i:1")
    (1, 'i:1', 0.5, 1)
    """
    kind, _, text = typed_key_of(key).partition(":")
    if kind == "i":
        return int(text)
    if kind == "f":
        return float(text)
    if kind == "s":
        return text
    raise GraphError(found=f"{key!r} is not a typed key", needed="i:…, s:… or f:…")


def record_key(typed_key: str, incarnation: int) -> str:
    """Return the key under which the record has the node number `incarnation` of a key.

    >>> record_key("i:7", 0), record_key("s:a", 2)
    ('i:7', '2@s:a')
    """
    return f"{incarnation}@{typed_key}" if incarnation else typed_key


def split_record_key(key: str) -> tuple[str, int]:
    """Return typed key and incarnation of a record's key.

    >>> split_record_key("i:7"), split_record_key("2@s:1@s:a")
    (('i:7', 0), ('s:1@s:a', 2))
    """
    if not key[:1].isdecimal():
        return key, 0
    number, _, typed_key = key.partition("@")
    return typed_key, int(number)


def next_record_key(key: str) -> str:
    """Return the record's key of the node that has a key after the one on record.

    >>> next_record_key("i:7"), next_record_key("1@i:7")
    ('1@i:7', '2@i:7')
    """
    typed_key, incarnation = split_record_key(key)
    return record_key(typed_key, incarnation + 1)


def typed_key_of(key: str) -> str:
    """Return the typed key of a record's key.

    >>> typed_key_of("i:7"), typed_key_of("1@i:7")
    ('i:7', 'i:7')
    """
    return key.partition("@")[2] if key[:1].isdecimal() else key


def typed_candidates(text: str) -> list[str]:
    """Return the typed keys that a person may mean by `text`, likeliest first; a store decides.

    >>> typed_candidates("12"), typed_candidates("s:12"), typed_candidates("a b")
    (['i:12', 's:12', 'f:12.0'], ['s:12', 's:s:12'], ['s:a b'])
    >>> typed_candidates("1@i:12")
    ['1@i:12', 's:1@i:12']
    """
    text = text.replace("\x00", "")
    candidates = [text] if RECORD_KEY.match(text) else []
    for kind in (int, str, float):
        try:
            candidates.append(encode_key(kind(text)))
        except (ValueError, OverflowError, GraphError):
            continue
    return list(dict.fromkeys(key for key in candidates if len(key) <= MAX_KEY_CHARS))
