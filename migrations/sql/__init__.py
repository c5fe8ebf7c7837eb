"""Alembic environment and revisions of the SQL audit store."""
