"""Retention: details of old runs are removed; what coverage and the record depend on stays."""
