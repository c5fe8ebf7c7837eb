"""A node's key as text that keeps its type: 1, "1" and 1.0 are three different nodes."""

from __future__ import annotations

from ringfence.connector.errors import GraphError

Key = str | int | float

MAX_KEY_CHARS = 512  # of a typed key; longer ones don't fit a PostgreSQL index with room to spare


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


def typed_candidates(text: str) -> list[str]:
    """Return the typed keys that a person may mean by `text`, likeliest first; a store decides.

    >>> typed_candidates("12"), typed_candidates("s:12"), typed_candidates("a b")
    (['i:12', 's:12', 'f:12.0'], ['s:12', 's:s:12'], ['s:a b'])
    """
    text = text.replace("\x00", "")
    candidates = [text] if text[:2] in {"i:", "s:", "f:"} else []
    for kind in (int, str, float):
        try:
            candidates.append(encode_key(kind(text)))
        except (ValueError, OverflowError, GraphError):
            continue
    return list(dict.fromkeys(key for key in candidates if len(key) <= MAX_KEY_CHARS))
