"""Compiled replay of a growing graph."""
