"""Text from the graph on a page: what would not be seen, or would move other text, as escapes."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

HIDDEN = (*range(0x09), *range(0x0B, 0x0D), *range(0x0E, 0x20), *range(0x7F, 0xA0),
          *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # fmt: skip
ESCAPES = {code: f"\\u{code:04x}" for code in HIDDEN}
"""Control characters but for line ends and tabs, and those that set the direction of text."""


def visible(value: Any) -> Any:
    """Return text whose control and direction characters are shown as escapes; others as they are.

    A name that reverses the direction of text would reverse the sentence around it.

    >>> print(visible("a" + chr(0x202E) + "b"), visible(7))
    a\\u202eb 7
    """
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return value.translate(ESCAPES) if is_text else value
