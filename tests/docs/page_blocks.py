"""The fenced blocks of the documentation's pages: what a reader would paste."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: the page's name, its language, its text."""

    page: str
    language: str
    text: str


def blocks_of(page, language):
    """The blocks of one language in a page, in order."""
    text = (DOCS / page).read_text("utf-8")
    return [Block(page, name, body) for name, body in FENCE.findall(text) if name == language]


def commands_of(block):
    """The commands of a block as lists of words, comments and continued lines joined.

    >>> commands_of(Block("", "bash", 'ringfence query "a\\n b"  # why\\n'))
    [['ringfence', 'query', 'a\\n b']]
    """
    commands, current, quoted = [], [], 0
    for line in block.text.splitlines(keepends=True):
        current.append(line)
        quoted += line.count('"')
        if quoted % 2 == 0:
            commands.append(shlex.split("".join(current), comments=True))
            current, quoted = [], 0
    return [command for command in commands if command]
