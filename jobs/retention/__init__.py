"""Retention: details of old runs are removed, what coverage and the record rest on stays."""
