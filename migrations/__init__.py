"""Alembic revisions for SQL, numbered Cypher files for the graph."""
