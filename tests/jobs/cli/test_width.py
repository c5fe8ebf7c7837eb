"""Tables of every verb fit 80 columns, whatever the names and numbers; no name moves the cursor."""

import inspect
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.cli import commands, console
from ringfence.jobs.cli.app import VERBS
from ringfence.jobs.cli.commands.record.explain import print_explanation
from ringfence.jobs.cli.commands.runs.status import print_status
from ringfence.jobs.cli.coverage_table import print_coverage
from ringfence.jobs.cli.text_table import draw_table, visible
from ringfence.jobs.config.load import load_values
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.jobs.views.explain import explain
from ringfence.jobs.views.explained_neighbours import ExplainedNeighbour
from ringfence.jobs.views.status import read_status

HOSTILE = (
    "mule\x1b[2J\x1b[H cleared",
    "W" * 120,
    "two\nlines\tand a bell\x07",
    "\u202eesrever 类别类别类别类别类别类别类别类别类别类别类别类别",
)
WIDTH = 80


@pytest.fixture
def printed(monkeypatch, capsys):
    """Return a function that gives the lines printed on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setattr(console, "_stdout", Console)

    def lines(show, *arguments):
        capsys.readouterr()
        show(*arguments)
        return capsys.readouterr().out.splitlines()

    return lines


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    values = {
        "project": HOSTILE[0],
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "audit": {"groups": ["region"]},
    }
    settings = load_values(values, folder / "ringfence.toml", {})
    store = open_store(settings.audit.url)
    plan = Plan(runs=3, per_run=40, classes=HOSTILE, regions=HOSTILE, prefix=HOSTILE[1])
    fill_store(store, settings, plan)
    yield settings, ProjectQueries(store, settings.project)
    store.close()


def too_wide(lines):
    """The lines of tables that are wider than the terminal; sentences wrap by themselves."""
    return [line for line in lines if cell_len(line) > WIDTH and not re.match(r"[A-Z]", line)]


def control_characters(lines):
    return [line for line in lines if re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", line)]


def test_status_coverage_and_a_node_fit_with_long_hostile_names(project, printed):
    settings, queries = project
    current = read_status(queries.store, settings.project)
    found = explain(queries, f"{HOSTILE[1]}2-7")
    around = tuple(ExplainedNeighbour(name, name, HOSTILE, None) for name in HOSTILE)
    shown = {
        "status": printed(print_status, current),
        "coverage": printed(print_coverage, current.coverage, "Coverage", current.totals),
        "explain": printed(print_explanation, replace(found, neighbours=around)),
    }
    for name, lines in shown.items():
        assert len(lines) > 10, name
        assert too_wide(lines) == [], name
        assert control_characters(lines) == [], name
    assert any("\\x1b[2J" in line for line in shown["coverage"])


def test_long_histories_are_shortened_with_a_word_about_the_rest(project, printed):
    settings, queries = project
    current = read_status(queries.store, settings.project)
    row = next(row for row in current.coverage if row.slice == "run")
    many = [replace(row, seq=seq) for seq in range(1, 10_001)]
    named = [replace(row, slice="class", name=f"class {n}", seq=10_000) for n in range(300)]
    lines = printed(print_coverage, [*many, *named], "Coverage", current.totals)
    assert len(lines) < 160
    assert "The newest 20 of 10,000 runs; --json has all." in lines
    assert "The worst 40 of 300 classes; --json has all." in lines


@pytest.mark.parametrize("columns", [1, 2, 5, 9, 14])
def test_any_table_fits_and_no_number_or_name_is_cut(columns, printed):
    names = [f"column {number}" for number in range(columns)]
    rows = [
        [1_234_567_890 + at if at % 2 else HOSTILE[(row + at) % 4] for at in range(columns)]
        for row in range(3)
    ]  # fmt: skip
    lines = printed(console.table, "A table " * 12, names, rows)
    assert [line for line in lines if cell_len(line) > WIDTH] == []
    assert control_characters(lines) == []
    whole = "".join(lines)
    if columns > 1:
        assert whole.count("1,234,567,891") == 3
    assert sum(line.count("W") for line in lines) == 120 * sum(
        value == HOSTILE[1] for row in rows for value in row
    )


def test_a_table_that_was_not_fitted_would_be_noticed(printed):
    """The negative control: rich's own table, with a width of its own."""
    from rich.table import Table

    def wide():
        drawn = Table("a", "b", width=120)
        drawn.add_row(HOSTILE[0], "x")
        Console(width=120).print(drawn)

    lines = printed(wide)
    assert too_wide(lines)
    assert control_characters(lines)


def test_sentences_keep_their_lines_and_show_control_characters(printed):
    assert printed(console.say, "one\ntwo \x1b[31mred") == ["one", "two \\x1b[31mred"]
    assert visible("plain Größe 类") == "plain Größe 类"


def test_every_table_of_every_verb_is_drawn_by_the_one_function_that_fits():
    folder = Path(commands.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        assert "rich.table" not in path.read_text(), path
    assert "draw_table" in inspect.getsource(console.table)
    assert draw_table("t", ["a"], [], WIDTH) is not None


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_config(verb):
    from typer.main import get_command

    from ringfence.jobs.cli.app import app

    command = get_command(app).commands[verb]
    for leaf in getattr(command, "commands", {verb: command}).values():
        options = [name for parameter in leaf.params for name in parameter.opts]
        assert "--config" in options, verb
        lines = leaf.get_help(__import__("click").Context(leaf, terminal_width=WIDTH)).splitlines()
        assert max(map(len, lines)) <= WIDTH, verb


def test_the_tables_of_reports_fit(printed, tmp_path):
    """Verbs whose reports are made up here: a run, a plan of times, findings, differences."""
    from ringfence.jobs.cli.commands.record.query import print_rows
    from ringfence.jobs.cli.commands.runs.schedule import print_plan
    from ringfence.jobs.cli.commands.setup.doctor import print_findings
    from ringfence.jobs.setup.finding import Finding

    plan = [{"project": HOSTILE[0], "job": "score", "trigger": "every 5 minutes",
             "next": ["2026-11-17 12:30:00+00:00"] * 3}]  # fmt: skip
    assert too_wide(printed(print_plan, plan)) == []
    findings = [Finding("error", " ".join(HOSTILE), f"ringfence doctor --config {HOSTILE[1]}")]
    assert too_wide(printed(print_findings, findings)) == []
    rows = [{f"n.{name}": HOSTILE[0] for name in "abcdefghijklmnop"}]
    assert too_wide(printed(print_rows, rows)) == []


def test_the_title_of_a_narrow_table_is_one_line(printed):
    lines = printed(console.table, "12 rows of a query", ["n"], [[1]])
    assert lines[0].rstrip() == "12 rows of a query"
