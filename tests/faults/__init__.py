"""Faults on purpose: `python -m tests.faults.run` (see docs/reliability.md)."""
