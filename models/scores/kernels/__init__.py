"""Compiled loops of the adaptive scores."""
