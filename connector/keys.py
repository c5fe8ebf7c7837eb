"""A node's key as text that keeps its type: 1, "1" and 1.0 are three different nodes."""

from __future__ import annotations

from ringfence.connector.errors import GraphError

Key = str | int | float


def encode_key(value: object) -> str:
    """Return the typed text of a key property: ``i:1``, ``s:1`` or ``f:1.0``.

    Text is kept code point by code point (NFC and NFD stay apart). NUL is refused because
    PostgreSQL can't hold it, booleans and anything else because nobody means them as keys.

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

    >>> decode_key("i:1"), decode_key("s:i:1"), decode_key("f:0.5")
    (1, 'i:1', 0.5)
    """
    kind, _, text = key.partition(":")
    if kind == "i":
        return int(text)
    if kind == "f":
        return float(text)
    if kind == "s":
        return text
    raise GraphError(found=f"{key!r} is not a typed key", needed="i:…, s:… or f:…")
