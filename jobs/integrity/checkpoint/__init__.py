"""Verifying what came since a checkpoint: which one, what came since, a sample of the rest."""
