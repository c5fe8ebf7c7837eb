"""Checks that everything on record is still what was decided: verify, reconcile, py2neo."""
