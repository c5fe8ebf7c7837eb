"""Relationships one by one, with their properties, of the relations that have columns."""
