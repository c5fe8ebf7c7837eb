"""Retention: which details of old runs `[audit] keep_days` removes, and which it keeps."""
