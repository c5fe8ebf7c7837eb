"""Sentences that state a probability, in what users read, and the table that lists them.

`docs/mathematics.md` ends with a table of all claims. A sentence that `CLAIM` matches must contain
a phrase of that table, or match `NO_CLAIM`. Pages of measurements alone (`docs/benchmarks`,
`docs/reproduction`), decisions, CONTRIBUTING and the page of the proofs itself are not searched:
what stands there names its proof or measurement beside it.
"""

import ast
import html
import json
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROOFS = "docs/mathematics.md"
HEADING = "## Every claim with a probability"
PAGES = (
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "UPGRADING.md",
    "docs/*.md",
    "examples/**/*.md",
)
TEMPLATES = ("jobs/**/templates/*.html",)
NOTEBOOKS = ("examples/**/*.ipynb",)
MODULES = ("jobs/**/*.py", "models/**/*.py", "connector/**/*.py", "examples/*/**/*.py")
COMMANDS = "jobs/cli/commands"  # docstrings there are the help that users see

NUMBER = r"(?:\d[\d.,]*|#)"  # 5, 99.9, or a value that a text is filled with
PER_CENT = rf"{NUMBER} ?(?:%|per ?cent)"
COUNT = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|nineteen|ninety(?:-\w+)?"
    r"|(?<![\d.,])\d{1,3}(?![\d,]))"
)
ROUND = r"(?:ten|twenty|(?:a |one )?hundred|(?:a |one )?thousand|10|20|100|1,000)\b(?!,)"
JUDGED = r"(?:sets|alarms|verdicts|lists|classes|looks|lives)"
KEPT = r"(?:coverage|sets?|promises?|alarms?|levels?)"
FAILS = r"(?:fails?|errs?|wrong|right|correct|misle[ad]d?s?|missed|missing|lost|covered)"
PLAIN = (  # as somebody says it who does not think of it as a probability
    rf"\b{COUNT} (?:in|out of|in every|of every) {ROUND}|\b{COUNT} of (?:ten|twenty|a hundred)\b",
    rf"\b{COUNT} (?:sets?|nodes?|times?|looks?|alarms?|runs) (?:in|out of|in every) {ROUND}",
    rf"\b(?:once|twice) (?:in|every) (?:\w+ )?{ROUND}",
    rf"\b(?:a|one|two|nine) (?:tenth|twentieth|hundredth|third|quarter)s? of (?:\w+ )?{JUDGED}\b",
    rf"\bevery (?:tenth|twentieth|hundredth)\b|\b(?:half|most) of (?:the |all )?{JUDGED}\b",
    rf"{PER_CENT} (?:sure|certain|certainty|confiden\w+|safe|likely|correct|right|wrong)\b",
    rf"{PER_CENT} (?:of the time|probability|chance)\b",
    r"\b(?:almost|nearly|virtually|practically) (?:certain(?:ly)?|sure(?:ly)?|always|never)\b",
    r"\b(?:certainly|undoubtedly|without fail|in all likelihood|rarely|seldom|hardly ever)\b",
    r"\b(?:very |most |quite )(?:un)?likely\b|\bprobably\b|\bunlikely\b",
    r"\b(?:little|small|slim|good|high|low) (?:chance|risk|probability)\b",
    r"\b(?:errors?|mistakes?|false positives?)\b[^.]*\b(?:rare|stays? (?:at|below|under|within))\b",
    rf"\b{KEPT}\b[^.]*\b(?:will be|stays? (?:at|near|above|below))\b",
    rf"\b{KEPT}\b[^.]*\bnever (?:drops?|falls?|fails?|errs?|lies?|misses)\b",
    rf"\b{KEPT}\b[^.]*\balways (?:holds?|contains?|covers?|keeps?)\b",
    r"\bsafe to (?:assume|say|conclude|leave)\b|\bcan(?: safely)? be (?:trusted|relied)\b",
    r"\b(?:rely|bet) (?:on (?:it|the|a|its|these)|that)\b",
    r"\b(?:be|are|is|am|feel) (?:quite |very |absolutely )?(?:sure|certain) (?:that|of|to)\b",
    rf"\b{FAILS}\b[^.]*(?:{PER_CENT}|\b(?:tenth|twentieth)\b)",
    rf"(?:{PER_CENT}|\b(?:tenth|twentieth)\b)[^.]*\b{FAILS}\b",
    rf"\bon average[^.]*{PER_CENT}|{PER_CENT}[^.]*\bon average\b",
    r"\bexpect (?:about |at most )?(?:one|two|\d+|no|an?|fewer)\b[^.]*\b(?:alarm|miss|error)",
)
CLAIM = re.compile(
    "|".join(
        (
            *PLAIN,
            r"\bprobabilit(?:y|ies) (?:at|of coverage|that|>=|<=)|\bpromised probability",
            rf"{NUMBER} ?% intervals?\b|\bchances? of\b|\bone per cent\b|\b1 in {NUMBER}",
            rf"\bat (?:most|least) (?:about )?{NUMBER} ?(?:%|per cent|of\b)",
            rf"\b(?:in|with) {NUMBER} ?% of (?:all |the )?(?:cases|looks|lives|sets|runs)",
            rf"\b{NUMBER} of (?:10|100|1,000)\b",
            r"\b(?:once|one|one \w+) in (?:a hundred|a thousand|twenty|ten)\b|\bof a hundred\b",
            rf"% (?:are|is) (?:covered|missed|promised)|\bpromise[sd]?\b[^.]*{NUMBER} ?%",
            rf"{NUMBER} ?% (?:\w+ ){{0,3}}promise|\bis usual for\b|\bexact law\b|1 - alpha\b",
            r"\bpromises every node\b|\ba rate that you choose\b|\bguarante|\bno assumption\b",
            r"\bproved\b|\bproven\b|\bruled out\b|\bmiss rate\b|\blong run\b",
            r"\bwhatever (?:changes|happens)\b|\bany level\b|\bby chance\b",
            r"\bfalse alarms?\b|\bcr(?:y|ies) wolf\b|\bwrongly\b",
            rf"\b(?:times )?(?:out of|in every) (?:ten|twenty|a hundred|{NUMBER})\b",
            rf"\bno (?:more|less|fewer) than (?:about )?{NUMBER} ?%|\b(?:false|error) rates?\b",
            rf"\b(?:under|below|above|over|exceeds?) {NUMBER} ?% of (?:all )?(?:cases|runs|nodes)",
            r"\bconfiden(?:ce|t) (?:of|level|that|interval)|\bodds (?:of|are|that)\b",
            r"\b(?:half|a third|a quarter|most) of all (?:cases|lives|runs|looks)\b",
            r"\b(?:practically|almost|hardly|virtually) (?:never|ever|always)\b",
            r"\bnever (?:wrong|misses)\b|\bto be sure of\b",
            r"\brisk (?:of|that)\b|\bhow likely\b|\bas likely as\b|\bunlikely (?:to|that)\b",
        )
    ),
    re.IGNORECASE,
)
NO_CLAIM = re.compile(
    "|".join(
        (
            r"\b(?:no|without a) guarantee|which the guarantee forbids|\bwould void the promise",
            r"^guarantee$|models[./]guarantee",  # names
            r"^1 - alpha\b|^promised (?:#|90) %$|% are promised$|\(promised: 90 %\)",  # figures
            r"miss rate, alert rate",  # what `advise` shows
            r"at most 5 % may be late|max_unusable|if 3 of 100 accounts are mules",  # no rates
            r"one will look better by chance|farther apart by chance",  # warnings
            r"by chance is the expected|^by chance$",  # a column of the reproduction
            r"^false alarm$|[\"']false alarm=|\bconfirmed\b[^.]*\bfalse[ -]alarm\b",  # outcomes
            r"Whatever happens here|at which false-alarm rate",  # a server, tests
            r"refused them by chance|\.guarantee and \.networks",  # what was, names
            r"nodes of unknown class were missed|% of such nodes were right",  # counts
            r"known nodes are covered by|precisely wrong",  # counts, a figure's
            r"are rarely read|are known seldom|too seldom|trees nearly always",  # no rates
        )
    ),
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with a probability, and the file it stands in."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A row of the table: what is claimed, how well it is known, where, its tests, its phrases."""

    claim: str
    status: str
    where: str
    tests: str
    phrases: tuple[str, ...]


def read_table(text):
    """The rows of the table of claims in the text of the page."""
    rows = [line.split(" | ") for line in text.split(HEADING)[1].splitlines() if line[:2] == "| "]
    return [
        Claim(claim[2:], status, where, tests, tuple(re.findall("`(.*?)`", phrases)))
        for claim, status, where, tests, phrases in rows[1:]
    ]


def not_listed(found, claims):
    """The sentences that contain no phrase of the claims and are no known figure of speech."""
    phrases = [phrase.lower() for claim in claims for phrase in claim.phrases]
    return [
        sentence
        for sentence in found
        if not NO_CLAIM.search(sentence.text)
        and not any(phrase in sentence.text.lower() for phrase in phrases)
    ]


def find_claims(root=ROOT):
    """The sentences with a probability in all files that users read."""
    return [
        Sentence(str(file.relative_to(root)), sentence)
        for patterns, read in READERS
        for pattern in patterns
        for file in sorted(root.glob(pattern))
        if file != root / PROOFS
        for sentence in _reader(read, root, file)(file.read_text("utf-8"))
        if CLAIM.search(sentence)
    ]


def _reader(read, root, file):
    is_command = read is of_module and file.is_relative_to(root / COMMANDS)
    return partial(of_module, with_docstrings=True) if is_command else read


def of_notebook(text):
    """The sentences of a notebook's cells of text; what code prints is the product's own words."""
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return [sentence for cell in cells for sentence in of_page("".join(cell["source"]))]


def sentences(text):
    """The sentences of a paragraph, without emphasis and line breaks.

    >>> sentences("It *holds*,\\nwith luck. At most 5 % are missed; the rest is in `a.b`.")
    ['It holds, with luck.', 'At most 5 % are missed; the rest is in a.b.']
    """
    plain = " ".join(re.sub(r"[*`]", "", text).split())
    return [part for part in re.split(r"(?<=[.!?])\s+(?=[A-Z\[(])", plain) if part]


def of_page(text):
    """The sentences of a page; a cell of a table and an item of a list are apart from the rest."""
    text = re.sub(r"^```.*?^```", "\n\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?=[-|#]|\d+\. )", "\n\n", text, flags=re.MULTILINE)
    blocks = re.split(r"\n\s*\n| \| ", text)
    return [sentence for block in blocks for sentence in sentences(block)]


def of_template(text):
    """The sentences of a template, without tags; what it is filled with is `#`."""
    text = re.sub(r"{%.*?%}|{#.*?#}|<(style|script).*?</\1>", " ", text, flags=re.DOTALL)
    text = re.sub(r"</?(?:p|h\d|li|td|th|tr|div)\b[^>]*>", "\n\n", re.sub(r"{{.*?}}", "#", text))
    blocks = html.unescape(re.sub(r"<[^>]*>", "", text)).split("\n\n")
    return [sentence for block in blocks for sentence in sentences(block)]


def of_module(text, *, with_docstrings=False):
    """The sentences of a module's texts, an inserted value as `#`; docstrings where asked for."""
    nodes = list(ast.walk(ast.parse(text)))
    left_out = {
        id(part)
        for node in nodes
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    if not with_docstrings:
        left_out |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [_text_of(node) for node in nodes if id(node) not in left_out]
    return [sentence for words in texts for sentence in sentences(words)]


def _text_of(node):
    """The text of a string or f-string; empty for other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            getattr(part, "value", "#") if isinstance(part, ast.Constant) else "#"
            for part in node.values
        )
    return ""


READERS = (
    (PAGES, of_page),
    (TEMPLATES, of_template),
    (MODULES, of_module),
    (NOTEBOOKS, of_notebook),
)
