"""Tables on a terminal: within its width, whatever names and numbers come; nothing is cut off.

Numbers are never broken. Text wraps; where even that does not fit, each row becomes a list of its
values, a line each. Control characters in names are shown as escapes: they would move the cursor.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

MIN_TEXT_WIDTH = 8  # below it, wrapped text becomes unreadable
GAP = 2  # between columns
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control, direction, half characters, line separators


def draw_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int
) -> RenderableType:
    """Return a table of at most `width` characters, or a list where no table fits."""
    texts = [[format_value(value) for value in row] for row in rows]
    numeric = [_is_numeric([row[place] for row in rows]) for place in range(len(columns))]
    names = [visible(name) for name in columns]
    cells = [[row[place] for row in texts] for place in range(len(columns))]
    room = width - GAP * (len(columns) - 1) - 1
    wide = _fit_widths(
        [_whole_width(name, column_cells) for name, column_cells in zip(names, cells, strict=True)],
        [_least_width(*column) for column in zip(names, cells, numeric, strict=True)],
        room,
    )
    fits = sum(wide) <= room
    drawn = _as_table(names, texts, numeric, wide) if fits else _as_list(names, texts)
    return _below_title(title, drawn)


def _below_title(title: str, drawn: RenderableType) -> RenderableType:
    """The title as a line above: as the table's it would wrap at the width of a narrow table."""
    from rich.console import Group
    from rich.text import Text

    return Group(Text(visible(title), style="bold"), drawn) if title else drawn


def format_value(value: Any) -> str:
    """Return a value as a person reads it.

    >>> format_value(None), format_value(0.123456), format_value(12345), format_value("a\\x1b[2J")
    ('–', '0.1235', '12,345', 'a\\\\x1b[2J')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return visible(str(value))


def visible(text: str, keep: str = "") -> str:
    """Return text whose control and direction characters are escapes, but for those to keep.

    >>> visible("one\\ntwo\\u202e"), visible("one\\ntwo", keep="\\n") == "one\\ntwo"
    ('one\\\\ntwo\\\\u202e', True)
    """
    return "".join(
        character
        if character in keep or unicodedata.category(character) not in HIDDEN
        else character.encode("unicode_escape").decode()
        for character in text
    )


def _as_table(
    names: Sequence[str],
    texts: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    wide: Sequence[int],
) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, GAP - 1, 0, 0),
    )
    for name, is_numeric, width in zip(names, numeric, wide, strict=True):
        drawn.add_column(
            Text(name), justify="right" if is_numeric else "left", width=width, overflow="fold"
        )
    for row in texts:
        drawn.add_row(*map(Text, row))
    return drawn


def _as_list(names: Sequence[str], texts: Sequence[Sequence[str]]) -> RenderableType:
    """Each row as lines of name and value, with an empty line after it."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(
        box=None,
        show_header=False,
        pad_edge=False,
    )
    drawn.add_column(max_width=24, overflow="fold", style="dim")
    drawn.add_column(overflow="fold")
    for row in texts:
        for name, text in zip(names, row, strict=True):
            drawn.add_row(Text(name), Text(text))
        drawn.add_row("", "")
    return drawn


def _is_numeric(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) for value in known)


def _fit_widths(whole: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Shrink the widest columns until the table fits, but none below its least width.

    >>> _fit_widths([8, 20, 30], [8, 4, 4], 40)
    [8, 16, 16]
    """
    wide = list(whole)
    while sum(wide) > room:
        reducible = [place for place in range(len(wide)) if wide[place] > least[place]]
        if not reducible:
            break
        wide[max(reducible, key=lambda place: wide[place])] -= 1
    return wide


def _whole_width(name: str, texts: Sequence[str]) -> int:
    from rich.cells import cell_len

    return max([cell_len(name), *map(cell_len, texts)])


def _least_width(name: str, texts: Sequence[str], numeric: bool) -> int:
    """The least width of a column: its numbers unbroken, and its words if they are short."""
    from rich.cells import cell_len

    head = max((cell_len(word) for word in name.split()), default=0)
    longest = max(map(cell_len, texts), default=0)
    if numeric:
        return max(head, longest)
    return max(min(head, 2 * MIN_TEXT_WIDTH), min(longest, MIN_TEXT_WIDTH))
