"""Compiled loops of the conformal core."""
