"""The graph database that a project belongs to."""
