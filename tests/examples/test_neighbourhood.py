"""The picture of a neighbourhood shows sets; the product never imports the package behind it."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/neo4j/neighbourhood.py"
FILL = """
CREATE (a:Account {id: 1}), (b:Account {id: 2}), (d:Device {name: 'phone'}), (far:Account {id: 3}),
  (mule:RingfenceClass {name: 'mule'}), (retail:RingfenceClass {name: 'retail'}),
  (a)-[:PAID]->(b), (a)-[:USES]->(d), (b)-[:PAID]->(far),
  (a)-[:MAY_BE {in_set: true}]->(mule), (a)-[:MAY_BE {in_set: true}]->(retail),
  (b)-[:MAY_BE {in_set: true}]->(mule), (b)-[:MAY_BE {in_set: false}]->(retail),
  (a)-[:EVALUATED]->(:RingfenceRun {seq: 1})
"""


@pytest.mark.filterwarnings("ignore")  # the package's own
def test_neighbours_are_shown_with_their_sets_and_nothing_of_ours_is_a_node(graph):
    picture = runpy.run_path(str(EXAMPLE))["picture"]
    graph.run(FILL)
    drawn = picture(graph.driver, "Account", "id", 1)
    assert sorted(node.caption for node in drawn.nodes) == [
        "1: mule or retail",
        "2: mule",
        "Device",
    ]
    assert sorted(edge.caption for edge in drawn.relationships) == ["PAID", "USES"]
    by_caption = {node.caption: node for node in drawn.nodes}
    assert by_caption["1: mule or retail"].size > by_caption["2: mule"].size
    assert by_caption["2: mule"].color != by_caption["Device"].color
    assert "mule or retail" in drawn.render().data
    graph.run("CREATE (:Account {id: 9})")
    assert [node.caption for node in picture(graph.driver, "Account", "id", 9).nodes] == ["9"]
    with pytest.raises(LookupError, match="no :Account node whose id is 'x`'"):
        picture(graph.driver, "Account", "id", "x`")


def test_the_product_never_imports_it():
    """It is GPL-3.0: an extra for notebooks alone."""
    named = [
        path.relative_to(ROOT)
        for room in ("connector", "models", "jobs", "migrations")
        for path in (ROOT / room).rglob("*.py")
        if "neo4j_viz" in path.read_text(encoding="utf-8")
    ]
    assert named == []
    assert "neo4j_viz" in EXAMPLE.read_text(encoding="utf-8")  # the control
