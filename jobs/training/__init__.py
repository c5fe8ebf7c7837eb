"""`ringfence train`: split, fit, and a model's files."""
