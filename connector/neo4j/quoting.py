"""The one function that puts a user's name into Cypher text."""

from __future__ import annotations

from ringfence.connector.errors import ConfigError


def quote(name: str) -> str:
    """Return `name` as a quoted Cypher identifier that can only ever be that identifier.

    Doubling backticks is not enough: Cypher unescapes ``\\u0060`` *before* it looks for the closing
    backtick, so the backslash is written as its own escape first.

    >>> quote("Account")
    '`Account`'
    >>> quote("a`b")
    '`a``b`'
    >>> print(quote("a\\\\u0060b"))
    `a\\u005cu0060b`
    """
    if not name or "\x00" in name:
        raise ConfigError(
            found=f"the name {name!r} is empty or holds a NUL character",
            needed="a label, type or property name that Neo4j can have",
        )
    return "`" + name.replace("\\", "\\u005c").replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """Return `text` as a Cypher string, for queries that a person will paste; ours use parameters.

    Cypher unescapes ``\\u0027`` before it looks for the closing quote, so a backslash is written as
    two of its own escapes, which leave the two that stand for one.

    >>> print(quote_text("it's"))
    'it\\'s'
    """
    if "\x00" in text:
        raise ConfigError(found="a text that holds a NUL character", needed="text without NUL")
    escaped = text.replace("\\", "\\u005c\\u005c").replace("'", "\\'")
    return f"'{escaped}'"
