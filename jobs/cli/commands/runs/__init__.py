"""Verbs that score, audit, repeat both on a schedule, and say how things stand."""
