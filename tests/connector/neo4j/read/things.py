"""A tiny graph for whole reads: 200 things with two relationships each, among nodes of others."""

from ringfence.connector.mapping import GraphMapping, RelationshipMapping

MAPPING = GraphMapping(
    label="Thing", key="id", features=("x",), features_are_list=True, class_property="class",
    created_at="created_at", time_kind="zoned",
    relationships=(RelationshipMapping("LINKS"), RelationshipMapping("KNOWS")),
)  # fmt: skip
FILL = """
UNWIND range(0, 199) AS i
CREATE (n:Thing {id: i, x: [i / 2.0, -1.0 * i], created_at: datetime('2024-01-01T00:00:00Z')})
CREATE (:Other {id: i})
WITH collect(n) AS all
UNWIND range(0, 199) AS i
WITH all[i] AS a, all[(i * 7 + 3) % 200] AS b, all[(i * 5 + 1) % 200] AS c
CREATE (a)-[:LINKS]->(b), (a)-[:KNOWS]->(c)
"""
