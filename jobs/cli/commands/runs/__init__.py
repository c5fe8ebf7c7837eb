"""Verbs that score, audit, repeat both on a schedule, and show the status."""
