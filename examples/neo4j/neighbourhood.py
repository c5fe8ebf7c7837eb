"""A node's neighbourhood with its sets as a picture in a notebook, by Neo4j's `neo4j-viz`.

    pip install '.[viz]'    # in a checkout; neo4j-viz is GPL-3.0; nothing of ringfence imports it

    from neo4j import GraphDatabase
    with GraphDatabase.driver("bolt://localhost:7687", auth=("neo4j", "…")) as driver:
        picture(driver, "Account", "id", 1034).render()

A colour per set: nodes that may be of one class only have that class's, others are grey. The
caption has the key and the classes that the node may be.
"""

from __future__ import annotations

from typing import Any

from neo4j import Driver
from neo4j_viz import Node, Relationship, VisualizationGraph

MAX_NEIGHBOURS = 50
COLOURS = ("#1f5ea8", "#b4531f", "#8c3d8c", "#2e7d46", "#7b5ea7", "#0b7285")
GREY, CHOSEN = "#8a8f98", 30
OURS = ["EVALUATED", "MAY_BE", "AUDITS"]
NEIGHBOURHOOD = """
MATCH (a) WHERE $label IN labels(a) AND a[$key] = $value
WITH a LIMIT 1
OPTIONAL MATCH (a)-[r]-(n) WHERE NOT type(r) IN $ours
WITH a, r, n LIMIT $limit
UNWIND [a, n] AS shown
WITH a, collect(DISTINCT r) AS around, collect(DISTINCT shown) AS nodes
RETURN elementId(a) AS chosen,
  [n IN nodes | {id: elementId(n), label: head(labels(n)), key: n[$key],
    set: COLLECT {
      MATCH (n)-[:MAY_BE {in_set: true}]->(c:RingfenceClass) RETURN c.name ORDER BY c.name
    }
  }] AS nodes,
  [r IN around | {source: elementId(startNode(r)), target: elementId(endNode(r)), type: type(r)}]
    AS relationships
"""


def picture(
    driver: Driver, label: str, key: str, value: Any, database: str | None = None
) -> VisualizationGraph:
    """Return the picture of the node of `label` whose property `key` is `value`."""
    records, _, _ = driver.execute_query(
        NEIGHBOURHOOD, label=label, key=key, value=value, ours=OURS, limit=MAX_NEIGHBOURS,
        database_=database,
    )  # fmt: skip
    if not records:
        raise LookupError(f"there is no :{label} node whose {key} is {value!r}")
    (found,) = records
    classes = sorted({name for node in found["nodes"] for name in node["set"]})
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(classes)}
    nodes = [_node(node, node["id"] == found["chosen"], colours) for node in found["nodes"]]
    edges = [
        Relationship(source=edge["source"], target=edge["target"], caption=edge["type"])
        for edge in found["relationships"]
    ]
    return VisualizationGraph(nodes=nodes, relationships=edges)


def _node(node: dict[str, Any], chosen: bool, colours: dict[str, str]) -> Node:
    only = node["set"][0] if len(node["set"]) == 1 else None
    name = str(node["key"] if node["key"] is not None else node["label"])
    return Node(
        id=node["id"],
        caption=": ".join(filter(None, (name, " or ".join(node["set"])))),
        color=colours.get(only, GREY) if only else GREY,
        size=CHOSEN if chosen else CHOSEN / 2,
        properties={"label": node["label"], "set": ", ".join(node["set"])},
    )
