"""Neo4j: connecting, reading what is new, writing sets, the embedded server. All Cypher is here."""
