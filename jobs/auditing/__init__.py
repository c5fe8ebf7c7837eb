"""`ringfence audit`: classes that became known, coverage, advice, alarms."""
