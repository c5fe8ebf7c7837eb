"""Verbs about models and the rule that they calibrate by."""
