"""What a run tells while it works: its id, log lines, a trace."""
