"""Who calibrates a run."""
