"""The dashboard for NeoDash and the style for Neo4j Browser name what is in the graph.

Neither program runs here. The dashboard's queries are those of the cookbook, which
`tests/docs/test_cookbook.py` executes; the style's names are those of the graph's reference.
"""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

from ringfence.connector.neo4j.quoting import quote
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


OTHER_FILE = """
project = "shop"

[graph]
class_property = "Art\\\\ der"

[[graph.nodes]]
label = "Kunde-`Konto`"
role = "classified"
key = "Nr."
created_at = "seit"
columns = ["x"]

[[graph.relationships]]
from = "Kunde-`Konto`"
type = "KENNT"
to = "Kunde-`Konto`"
"""
FILL = """
CREATE (fraud:RingfenceClass {project: 'shop', name: "it's fraud"}),
  (fine:RingfenceClass {project: 'shop', name: 'fine'}),
  (run:RingfenceRun {project: 'shop', seq: 1, at: datetime(), alpha: 0.1}),
  (a:`Kunde-``Konto``` {`Nr.`: 1}), (b:`Kunde-``Konto``` {`Nr.`: 2}),
  (c:`Kunde-``Konto``` {`Nr.`: 3, KIND: "it's fraud"}),
  (d:`Kunde-``Konto``` {`Nr.`: 4, KIND: 'fine'}),
  (a)-[:KENNT]->(b), (a)-[:KENNT]->(c),
  (a)-[:EVALUATED {size: 2}]->(run), (b)-[:EVALUATED {size: 1}]->(run),
  (d)-[:EVALUATED {size: 1}]->(run),
  (a)-[:MAY_BE {in_set: true, p: 0.6}]->(fraud), (a)-[:MAY_BE {in_set: true, p: 0.2}]->(fine),
  (b)-[:MAY_BE {in_set: true, p: 0.6}]->(fraud), (d)-[:MAY_BE {in_set: true, p: 0.6}]->(fraud)
WITH run
UNWIND ['total', 'class', 'run'] AS slice
CREATE (:CoverageAudit {slice: slice, name: 'fine', first_alpha: true, alpha: 0.1, known: 1,
  covered: 0, coverage: 0.0, verdict: 'watch', words: 'so'})-[:AUDITS]->(run)
""".replace("KIND", quote("Art\\ der"))


def make_for(folder, text, class_):
    """The dashboard that the script writes for a configuration file."""
    (folder / "ringfence.toml").write_text(text, encoding="utf-8")
    words = ["--config", "ringfence.toml", "--class", class_, "--output", "mine.json"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("RINGFENCE", "NEO4J"))}
    command = [sys.executable, ROOT / "examples/neo4j/make_dashboard.py", *words]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return json.loads((folder / "mine.json").read_text(encoding="utf-8"))


def silent(graph, dashboard):
    """Titles of the reports that return nothing."""
    every = [report for page in dashboard["pages"] for report in page["reports"]]
    return [one["title"] for one in every if not graph.run(one["query"])]


def test_a_dashboard_of_another_project_has_its_names(graph, tmp_path):
    graph.run(FILL)
    mine = make_for(tmp_path, OTHER_FILE, "it's fraud")
    assert (mine["title"], mine["uuid"] == DASHBOARD["uuid"]) == ("shop", False)
    assert [len(page["reports"]) for page in mine["pages"]] == [6, 4, 2]
    assert mine["pages"][1]["reports"][0]["title"] == "Who may be it's fraud?"
    assert silent(graph, mine) == []
    # the control: the demo's names say nothing about this graph
    assert len(silent(graph, DASHBOARD)) > 6


def test_without_relationships_among_its_nodes_it_has_no_page_of_neighbours(graph, tmp_path):
    graph.run(FILL)
    without = OTHER_FILE.partition("[[graph.relationships]]")[0]
    mine = make_for(tmp_path, without, "it's fraud")
    assert [page["title"] for page in mine["pages"]] == ["Was the promise kept?", "Sets"]
    assert silent(graph, mine) == []


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
