"""The markers follow from the fixtures, and the lane without servers has none in it."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[1]
CONFTEST = (ROOT / "tests/conftest.py").read_text(encoding="utf-8")
(FAST_LANE,) = re.findall(
    r"^FAST_LANE := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
)
MARKERS = ("neo4j", "postgres", "browser", "slow", "long", "statistics")
LANES = {
    "test_plain": set(),
    "test_graph": {"neo4j"},
    "test_workspace[sqlite]": {"neo4j"},
    "test_workspace[postgresql]": {"neo4j", "postgres"},
    "test_store[sqlite]": set(),
    "test_store[postgresql]": {"postgres"},
    "test_store_through_another_fixture[sqlite]": set(),
    "test_store_through_another_fixture[postgresql]": {"postgres"},
    "test_only_sqlite[sqlite]": set(),
    "test_own_graph": set(),
    "test_page": {"browser"},
    "test_simulated": {"slow", "statistics"},
    "test_of_minutes": {"slow", "long"},
    "test_whole_class": {"neo4j"},
}
TESTS = """
import pytest

@pytest.fixture
def store(sql_url):
    return sql_url

@pytest.fixture
def browser():
    pass

@pytest.fixture
def page(browser):
    pass

def test_plain(tmp_path): pass
def test_graph(graph): pass
def test_workspace(grown): pass
def test_store(sql_url): pass
def test_store_through_another_fixture(store): pass
@pytest.mark.parametrize("sql_url", ["sqlite"], indirect=True)
def test_only_sqlite(sql_url): pass
def test_page(page): pass
@pytest.mark.statistics
def test_simulated(): pass
@pytest.mark.long
def test_of_minutes(): pass

class TestWhole:
    @pytest.fixture(autouse=True)
    def _empty(self, connected): pass
    def test_whole_class(self): pass
"""
OWN_GRAPH = '''
import pytest

@pytest.fixture
def graph():
    """A fixture of the same name that needs no server."""

def test_own_graph(graph): pass
'''


@pytest.fixture
def suite(pytester):
    """A suite with our conftest and markers, in a folder of its own."""
    markers = "\n".join(f"    {name}: x" for name in MARKERS)
    pytester.makeini(f"[pytest]\naddopts = --strict-markers\nmarkers =\n{markers}\n")
    pytester.makeconftest(CONFTEST)
    return pytester


def collected(suite, expression):
    """Names of the tests that a choice by markers leaves."""
    done = suite.runpytest_inprocess("--collect-only", "-q", "-p", "no:xdist", "-m", expression)
    return {line.split("::")[-1] for line in done.outlines if "::" in line}


def test_every_test_has_the_markers_that_its_fixtures_say(suite):
    suite.makepyfile(test_many=TESTS, test_own=OWN_GRAPH)
    for marker in MARKERS:
        wanted = {name for name, markers in LANES.items() if marker in markers}
        assert collected(suite, marker) == wanted, marker


def test_the_lane_of_make_test_fast_has_no_server_and_nothing_slow(suite):
    suite.makepyfile(test_many=TESTS, test_own=OWN_GRAPH)
    assert collected(suite, FAST_LANE) == {name for name, markers in LANES.items() if not markers}


HIDDEN = {
    "launch._spawn(tmp_path, {})": "neo4j",
    "request.getfixturevalue('neo4j_server')": "neo4j",
    "request.getfixturevalue('postgres_server')": "postgres",
}


@pytest.mark.parametrize(("code", "marker"), HIDDEN.items(), ids=["launch", "neo4j", "postgres"])
def test_a_test_that_starts_a_server_without_saying_so_fails(suite, code, marker):
    """The negative control: nothing of this is to be seen in the fixtures."""
    head = "from ringfence.connector.neo4j.embedded import launch"
    suite.makepyfile(f"{head}\ndef test_hidden(request, tmp_path):\n    {code}\n")
    assert collected(suite, FAST_LANE) == {"test_hidden"}
    done = suite.runpytest_inprocess("-q", "-p", "no:xdist")
    assert done.parseoutcomes() == {"failed": 1}
    done.stdout.fnmatch_lines([f"*test_hidden starts a server: mark it with *.{marker}"])


def test_a_marker_with_a_slip_of_the_pen_is_refused(suite):
    suite.makepyfile("import pytest\n@pytest.mark.postgress\ndef test_it(): pass\n")
    done = suite.runpytest_inprocess("--collect-only", "-q")
    assert done.parseoutcomes()["errors"] == 1


def test_the_real_tests_of_this_run_are_marked_by_what_their_names_say(request):
    """A fact that does not come from the fixtures: the parameter in the name, the folder."""
    for item in request.session.items:
        marks = {mark.name for mark in item.iter_markers()}
        parameters = item.callspec.id if hasattr(item, "callspec") else ""
        if "sql_url" in item.fixturenames:
            assert ("postgres" in marks) == ("postgresql" in parameters), item.nodeid
        if item.path.parent.name == "faults" and "graph" in item.fixturenames:
            assert {"neo4j", "postgres"} <= marks, item.nodeid
        if item.path.name in ("test_read_full.py", "test_write_sets.py"):
            assert "neo4j" in marks, item.nodeid
