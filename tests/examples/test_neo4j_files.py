"""The dashboard for NeoDash and the style for Neo4j Browser name what is in the graph.

Neither program runs here. The dashboard's queries are those of the cookbook, which
`tests/docs/test_cookbook.py` executes; the style's names are those of the graph's reference.
"""

import json
import re
import runpy
from pathlib import Path

from tests.docs.test_cookbook import DEMO_RECIPES

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "examples/neo4j/make_dashboard.py"))
DASHBOARD = json.loads((ROOT / "examples/neo4j/dashboard.json").read_text(encoding="utf-8"))
SCHEMA = runpy.run_path(str(ROOT / "docs/site/graph_schema.py"))


def reports():
    return [report for page in DASHBOARD["pages"] for report in page["reports"]]


def test_the_dashboard_is_what_its_script_writes():
    assert SCRIPT["make_dashboard"]() == DASHBOARD, "run: python examples/neo4j/make_dashboard.py"


def test_every_report_is_a_query_that_the_tests_execute():
    executed = {(title, query.strip()) for title, query in DEMO_RECIPES}
    assert {(one["title"], one["query"]) for one in reports()} <= executed
    assert len(reports()) == len({one["id"] for one in reports()}) > 10


def test_reports_of_a_page_do_not_overlap_and_fit_the_grid():
    for page in DASHBOARD["pages"]:
        cells = [
            (x, y)
            for one in page["reports"]
            for x in range(one["x"], one["x"] + one["width"])
            for y in range(one["y"], one["y"] + one["height"])
        ]
        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < SCRIPT["COLUMNS"]


def test_the_style_is_about_labels_types_and_properties_of_ours():
    text = (ROOT / "examples/neo4j/ringfence.grass").read_text(encoding="utf-8")
    known = {
        kind: {part.name: set(part.properties) for part in SCHEMA[place]}
        for kind, place in (("node", "NODES"), ("relationship", "RELATIONSHIPS"))
    }
    rules = re.findall(r"(node|relationship)\.(\w+) \{(.+?)\}\n", text, re.S)
    assert {name for _, name, _ in rules} >= {"MAY_BE", "EVALUATED", "RingfenceClass"}
    for kind, name, body in rules:
        assert name in known[kind], name
        shown = set(re.findall(r'caption: "\{(\w+)\}"', body))
        assert shown <= known[kind][name], name
