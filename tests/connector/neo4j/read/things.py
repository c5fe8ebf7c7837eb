"""A tiny graph for whole reads: 200 things with two relationships each, among nodes of others."""

from ringfence.connector.mapping import RelationMapping, map_one_label

MAPPING = map_one_label(
    label="Thing", key="id", features="x", class_property="class",
    created_at="created_at", time_kind="zoned",
    relations=(RelationMapping(0, "LINKS", 0), RelationMapping(0, "KNOWS", 0)),
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
