"""Scores, rules, promises and calibration sets are objects: their names are compared nowhere else.

A comparison with a name would have to be found and extended for every new kind. What a module wants
to know is a question to the object, answered in the kind's own file.
"""

import ast
from pathlib import Path

import pytest

from ringfence.models.calibration.sets.registry import CALIBRATION_SETS
from ringfence.models.promise.registry import PROMISES
from ringfence.models.rules.registry import RULES
from ringfence.models.scores.registry import SCORES

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("models/calibration/sets", "models/promise", "models/rules", "models/scores")
NAMES = {*CALIBRATION_SETS, *PROMISES, *RULES, *SCORES}
OTHER_VOCABULARIES = {
    "slice", "slice_", "promised_slices", "by",  # of coverage rows: run, window, class, group
    "asked", "parameter",  # filters of the worklist
    "batch_size", "class_weights", "compare_by",  # "auto" of other settings
}  # fmt: skip
"""Names of values that use some of the same words for something else."""

OTHER_RULES = "models/sequences/timeline.py"
"""Replays the paper's sequences by names of its own (`node`, `edge_exact`, `naive`, `auto`)."""


def compared_names(source):
    """Yield line and name of every comparison with the name of a kind."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if not OTHER_VOCABULARIES & {_identifier(side) for side in sides}:
                yield from _named(node, sides)
        elif isinstance(node, ast.MatchValue):
            yield from _named(node, [node.value])
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
            if _identifier(node.slice) not in OTHER_VOCABULARIES:
                yield from _named(node, node.value.keys)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Dict):
            yield from _named(node, node.value.keys)


def _named(where, sides):
    """The names of kinds that stand on a side, or in a list of them."""
    for side in sides:
        several = isinstance(side, ast.Tuple | ast.List | ast.Set)
        for node in side.elts if several else [side]:
            if isinstance(node, ast.Constant) and node.value in NAMES:
                yield where.lineno, node.value


def _identifier(node):
    """The name of what is compared: of a variable, an attribute, an entry."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value
    return getattr(node, "attr", getattr(node, "id", None))


def modules():
    for room in ("connector", "jobs", "models"):
        for file in sorted((ROOT / room).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            if not path.startswith(KINDS) and path != OTHER_RULES:
                yield path, file.read_text(encoding="utf-8")


def test_no_module_compares_the_name_of_a_kind():
    comparisons = [
        f"{path}:{line} {name}"
        for path, source in modules()
        for line, name in compared_names(source)
    ]
    assert comparisons == []


@pytest.mark.parametrize(
    "source",
    [
        'if terms.promise == "class": ...',
        'lives = tally.calibration_set != "frozen"',
        'rule in {"NodeEx", "auto"}',
        '"EdgeEx" == rule',
        'row["promise"] == "group"',
        '(terms.promise, terms.weights) == ("marginal", "none")',
        '{"window": 1, "growing": 2}[kind]',
        '{"class": ", inside each class"}.get(terms.promise, "")',
        'match score:\n    case "DAPS": ...',
    ],
)
def test_the_guard_finds_a_comparison(source):
    """The control: forms of comparison that stood in the modules before."""
    assert list(compared_names(source))


@pytest.mark.parametrize(
    "source",
    [
        'row.slice in {"class", "group"}',
        'settings.model.class_weights == "auto"',
        'row["class"] is None',
        'terms = {"promise": "marginal"}',
        'queries.named("class")',
    ],
)
def test_the_guard_leaves_other_words_alone(source):
    assert not list(compared_names(source))
