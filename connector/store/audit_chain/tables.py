"""The table of the salt of node keys; `tables` has all the others, and offers it."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from ringfence.connector.store.thresholds.tables import metadata

key_salt = Table(
    "key_salt",
    metadata,
    Column("project", Text, primary_key=True),
    Column("salt", Text, nullable=False),
)
"""The secret that node keys are hashed with in packs that do not name nodes; made once."""
