"""Numbered Cypher files; each statement runs once per graph, its checksum is recorded."""
