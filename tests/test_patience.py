"""No limit in seconds that a slow or busy machine could break: what comes is waited for."""

import ast
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS

TESTS = Path(__file__).parent
MAX_SHORT_SECONDS = 1.0  # such a limit is there to run out: nobody expects an answer within it
MIN_PATIENT_SECONDS = 300.0
LIMITS = ("timeout", "timeout_seconds")
WAITS = ("join", "wait")


def numbers_of(tree):
    """Constants of a module that are numbers, by their names."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, int | float)
    }


def limits_of(call):
    """Arguments of a call that say how long it may take."""
    limits = [keyword.value for keyword in call.keywords if keyword.arg in LIMITS]
    is_wait = isinstance(call.func, ast.Attribute) and call.func.attr in WAITS
    return limits + (call.args[:1] if is_wait else [])


def tight_limits(source):
    """Lines with a limit in which a slow machine might not be done."""
    tree = ast.parse(source)
    numbers, lines = numbers_of(tree), []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        for limit in limits_of(call):
            named = numbers.get(limit.id) if isinstance(limit, ast.Name) else None
            seconds = limit.value if isinstance(limit, ast.Constant) else named
            if isinstance(seconds, int | float) and seconds > MAX_SHORT_SECONDS:
                lines += [call.lineno] if seconds < MIN_PATIENT_SECONDS else []
    return lines


def test_whatever_is_awaited_has_all_the_time_it_needs():
    assert PATIENCE_SECONDS >= MIN_PATIENT_SECONDS
    tight = {
        str(file.relative_to(TESTS)): lines
        for file in sorted(TESTS.rglob("*.py"))
        if (lines := tight_limits(file.read_text(encoding="utf-8")))
    }
    assert tight == {}


@pytest.mark.parametrize(
    ("line", "is_tight"),
    [
        ("thread.join(60)", True),
        ("process.wait(timeout=20)", True),
        ("TEN = 10\nconnect(address, timeout=TEN)", True),
        ("open_project(timeout_seconds=120.0)", True),
        ("thread.join()", False),
        ("thread.join(0.7)", False),
        ("process.wait(PATIENCE_SECONDS)", False),
        ("LONG = 900\nrun(timeout=LONG)", False),
        ("', '.join(names)", False),
    ],
)
def test_a_tight_limit_is_seen_and_another_one_is_not(line, is_tight):
    assert bool(tight_limits(line)) == is_tight
