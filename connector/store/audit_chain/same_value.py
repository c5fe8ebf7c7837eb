"""Whether a value in a store is the one that was sealed: its type counts as well."""

from __future__ import annotations

from typing import Any


def is_same(stored: Any, sealed: Any) -> bool:
    """Whether two values are equal and of one kind; Python alone says that True equals 1.

    A whole number and a float may stand for each other: SQL engines turn one into the other.

    >>> is_same(1, True), is_same(True, True), is_same(0.1, 0.1), is_same(2, 2.0)
    (False, True, True, True)
    >>> is_same("1", 1), is_same(b"mule", "mule"), is_same([True], [1])
    (False, False, False)
    """
    if isinstance(stored, bool) or isinstance(sealed, bool):
        return type(stored) is type(sealed) and stored == sealed
    if isinstance(stored, list | tuple) and isinstance(sealed, list | tuple):
        return len(stored) == len(sealed) and all(map(is_same, stored, sealed))
    return bool(stored == sealed)


def is_identical(shown: Any, decided: Any) -> bool:
    """Whether two values are equal and of one type, inside lists and dictionaries as well.

    A graph keeps whole numbers, floats and truth values apart, and so do queries on it.

    >>> is_identical(1, True), is_identical(1.0, 1), is_identical(1.0, 1.0)
    (False, False, True)
    >>> is_identical([("mule", 0.5, True)], [("mule", 0.5, 1)]), is_identical({"a": 1}, {"a": 1.0})
    (False, False)
    """
    if isinstance(shown, list | tuple) and isinstance(decided, list | tuple):
        return len(shown) == len(decided) and all(map(is_identical, shown, decided))
    if isinstance(shown, dict) and isinstance(decided, dict):
        return shown.keys() == decided.keys() and all(
            is_identical(value, decided[name]) for name, value in shown.items()
        )
    return type(shown) is type(decided) and bool(shown == decided)
