"""Every `ringfence …` that a page shows, in a block or within a sentence, is one that exists.

Tutorial, how-to and operations are run whole (`test_pages`); here all pages are read: verbs,
options and their kinds are those of the command line.
"""

import re
import shlex
from pathlib import Path

import pytest
import typer

from ringfence.jobs.cli.app import VERBS, app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if path.name != "CHANGELOG.md" and "reference" not in path.parts  # it tells of what was
)
SHELLS = ("", "sh", "bash")
INDENTED = re.compile(r"^ {4,}((?:ringfence|python -m ringfence) .+)$", re.MULTILINE)
INLINE = re.compile(r"`((?:ringfence|python -m ringfence) [^`]+)`")
USAGE_ERROR = typer.BadParameter.__mro__[1]  # of the click inside typer, or of click itself
COMMAND_LINE = typer.main.get_command(app)
PLACES = {"FOLDER": "x", "N": "1", "SEQ": "1", "VERSION": "20260101", "…": "x", "...": "x"}


def commands_in(text):
    """The commands of a page as lists of words, without the program.

    >>> block = "```\\nringfence query \\"A\\nB\\" # why\\n```\\n"
    >>> commands_in(f"as `ringfence audit --json` says\\n{block}")
    [['query', 'A\\nB'], ['audit', '--json']]
    >>> commands_in("`ringfence` is a word, `ringfence.open` a name")
    []
    """
    blocks, prose = split_fences(text)
    shown = [line for block in blocks for line in joined(block)]
    shown += [*INDENTED.findall(prose), *(" ".join(one.split()) for one in INLINE.findall(prose))]
    found = []
    for line in shown:
        words = shlex.split(line, comments=True)
        words = words[2:] if words[:2] == ["python", "-m"] else words
        if words[:1] == ["ringfence"] and len(words) > 1:
            found.append([PLACES.get(one, one) for one in (word.strip("[]") for word in words[1:])])
    return found


def split_fences(text):
    """The blocks of shell, and the page without any block."""
    blocks, prose, language = [], [], None
    for line in text.splitlines():
        if line.strip().startswith("```"):
            language = line.strip()[3:] if language is None else None
            blocks.append("")
        elif language is None:
            prose.append(line)
        elif language in SHELLS:
            blocks[-1] += line + "\n"
    return blocks, "\n".join(prose)


def joined(block):
    """Lines, those within one pair of quotes as one."""
    lines, current = [], ""
    for line in block.splitlines():
        current += line if not current else f"\n{line}"
        if current.count('"') % 2 == 0:
            lines.append(current.strip())
            current = ""
    return [line for line in lines if line.startswith(("ringfence ", "python -m ringfence "))]


def problem_of(words):
    """Why the command line would refuse the words; nothing where it takes them.

    A sentence may name a verb, or an option, without the value that belongs to it.
    """
    command = COMMAND_LINE
    try:
        while hasattr(command, "get_command") and words and words != ["--help"]:
            verb, *words = words
            context = typer.Context(command)
            command = command.get_command(context, verb)
            assert command is not None, f"no verb {verb!r}"
        if not hasattr(command, "get_command"):
            command.make_context(command.name, list(words))
    except typer.Exit:
        return None
    except (USAGE_ERROR, AssertionError) as error:
        unfinished = type(error).__name__ == "MissingParameter" or "requires an" in str(error)
        return None if unfinished else str(error) or type(error).__name__
    return None


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_exists(page):
    found = commands_in((ROOT / page).read_text("utf-8"))
    problems = [(words, why) for words in found if (why := problem_of(words))]
    assert problems == []


def test_pages_show_commands():
    shown = [words[0] for page in PAGES for words in commands_in((ROOT / page).read_text("utf-8"))]
    assert len(shown) > 150
    assert set(VERBS) <= set(shown)


@pytest.mark.parametrize(
    "planted",
    ["`ringfence worklst mule`", "`ringfence audit --since 3`", "```\nringfence scoer\n```",
     "```bash\nringfence score --limit x\n```", "    ringfence train --promot",
     "`ringfence neo4j sart`"],
)  # fmt: skip
def test_a_wrong_command_in_a_page_would_be_noticed(planted):
    """The negative control."""
    page = (ROOT / "docs/scheduling.md").read_text("utf-8")
    found = commands_in(f"{page}\n\n{planted}\n")
    assert len([words for words in found if problem_of(words)]) == 1
