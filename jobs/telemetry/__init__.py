"""Telemetry of a run: its id, log lines, a trace."""
