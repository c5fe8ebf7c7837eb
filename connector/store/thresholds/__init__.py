"""The thresholds of runs in SQL: their tables, what was recorded, the nodes that each judged."""
