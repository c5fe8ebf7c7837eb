"""Every sentence with a probability belongs to a row of the table in docs/mathematics.md."""

import doctest
import importlib.util
import re

import pytest

from tests.docs import claims
from tests.docs.claims import PROOFS, ROOT, Sentence, find_claims, not_listed, read_table


@pytest.fixture(scope="module")
def table():
    return read_table((ROOT / PROOFS).read_text("utf-8"))


@pytest.fixture(scope="module")
def sentences():
    return find_claims()


def test_every_sentence_with_a_probability_stands_in_the_table(table, sentences):
    """A new one needs a phrase in a row of the table: is it proved, measured or hoped?"""
    assert [f"{s.file}: {s.text}" for s in not_listed(sentences, table)] == []


def test_every_row_has_a_status_a_proof_or_measurement_and_a_sentence(table, sentences):
    assert len(table) > 10
    for row in table:
        assert set(row.status.split(", ")) <= {"proved", "measured", "hoped"}, row.claim
        assert row.where.strip(), row.claim
        assert len(not_listed(sentences, [row])) < len(not_listed(sentences, [])), row.claim


def test_every_test_of_the_table_exists(table):
    for row in table:
        named = re.findall("`(.*?)`", row.tests)
        assert named, row.claim
        for name in named:
            module = name.removeprefix("python -m ")
            assert (ROOT / name).is_file() or importlib.util.find_spec(module), name


NOTEBOOK = '{"cells": [{"cell_type": "markdown", "source": ["One in twenty fails."]}]}'
PLANTED = (
    ("docs/new.md", "Sets are right.\n\nNo more than that: *at most 3 %* of parts\nare lost.\n"),
    ("docs/new.md", "| word | means |\n|---|---|\n| trust | wrong once in a hundred years |\n"),
    ("README.md", "- Whatever changes, sets keep it.\n"),
    ("docs/new.md", "A person is wrongly alarmed at most once in a hundred such lives.\n"),
    ("docs/new.md", "The true class is ruled out for at most 10 % of nodes.\n"),
    ("jobs/cli/commands/new.py", 'say("Devices of mules, at any level you like:")\n'),
    ("jobs/dashboard/templates/new.html", "<p>Sets err with <b>probability at most</b> 1 %.</p>"),
    ("jobs/report/templates/new.html", "<td>{{ few }} % are missed by mistake</td>"),
    ("jobs/new.py", 'def note(a):\n    return f"it holds with probability at most {a:g}"\n'),
    ("models/new.py", 'WORDS = (\n    "coverage is "\n    "guaranteed"\n)\n'),
    ("CHANGELOG.md", "- **New**: alarms err in no more than 2 % of lives.\n"),
    ("UPGRADING.md", "Sets hold the class nine times out of ten.\n"),
    ("examples/new/flow.py", 'print("it practically never misses")\n'),
    ("examples/new.ipynb", NOTEBOOK),
    ("docs/new.md", "You can have a confidence of nine tenths in it.\n"),
    ("docs/new.md", "Coverage is below 80 % of all runs there.\n"),
    ("docs/new.md", "The risk that a mule is lost is small.\n"),
    ("jobs/cli/commands/new.py", 'def new():\n    """Score with a guarantee."""\n'),
)

PLAIN = (
    "Nine in ten sets contain the right answer.",
    "A set is wrong one time in ten.",
    "The right class is missing from a tenth of the sets.",
    "Only one set in ten is wrong.",
    "Sets contain the truth nine times in ten.",
    "The set almost certainly holds the class.",
    "The alarm rarely fires without cause.",
    "False positives are rare.",
    "It is safe to assume that the class is in the set.",
    "We are 90 % sure that the class is among them.",
    "The true class is in there with 90 % certainty.",
    "Errors stay under ten per cent.",
    "Sets fail in 10 % of cases.",
    "Coverage will be 90 %.",
    "Coverage never drops below what you asked for.",
    "You will be misled once every hundred nodes.",
    "Five in a hundred alarms are false.",
    "The alarm is right 99 % of the time.",
    "Two thirds of lists are entirely right.",
    "It is very unlikely that a fraudster escapes.",
    "Sets are correct 9 times out of 10.",
    "You can be certain that the class is in the set.",
    "On average 10 % of nodes are lost.",
    "Every tenth set is wrong.",
    "Sets always contain the true class.",
    "Expect one false alarm a year.",
    "You can rely on the set.",
    "There is little chance that a mule gets through.",
    "The verdict is probably right.",
)
"""What somebody writes who does not think of it as a probability."""

NO_PROBABILITY = (
    "Ten runs of 1,000 nodes were read in 100 seconds.",
    "Half of the nodes have a time, and most of the columns are numbers.",
    "Each node is read once, and the mirror is always written before the run ends.",
    "A run depends on the configuration, and so does its order.",
    "The last of 20 versions is in use; one of them was promoted twice.",
)


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_sentence_is_found(table, text):
    assert claims.CLAIM.search(text)
    assert not_listed([Sentence("docs/new.md", text)], table)


@pytest.mark.parametrize("text", NO_PROBABILITY)
def test_a_sentence_without_a_probability_is_left_alone(text):
    assert not claims.CLAIM.search(text)


@pytest.mark.parametrize(("file", "text"), PLANTED)
def test_a_planted_sentence_is_found(tmp_path, table, file, text):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text, "utf-8")
    assert [sentence.file for sentence in not_listed(find_claims(tmp_path), table)] == [file]


def test_a_listed_sentence_and_plain_figures_are_not_reported(tmp_path, table):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "new.md").write_text(
        "A run takes 3 s and 90 % of the memory. Coverage lies there in 95 of 100 cases.\n"
        "```\nat most 1 % in a block of code\n```\n"
    )
    assert [sentence.text for sentence in find_claims(tmp_path)] == [
        "Coverage lies there in 95 of 100 cases."
    ]
    assert not_listed(find_claims(tmp_path), table) == []


def test_a_row_that_is_taken_away_leaves_its_sentences_unlisted(table, sentences):
    """No row is idle because phrases of another one are too general."""
    for row in table:
        others = [other for other in table if other is not row]
        assert not_listed(sentences, others), row.claim


def test_phrases_are_looked_for_in_one_sentence(table):
    split = Sentence("a.md", "It is guaranteed"), Sentence("a.md", "with a miss rate")
    assert len(not_listed(split, table)) == 2


def test_examples_in_docstrings_hold():
    assert doctest.testmod(claims).failed == 0
