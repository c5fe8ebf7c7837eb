"""Verbs that read, check and hand out what is on record."""
