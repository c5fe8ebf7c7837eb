"""Boosted trees as a scorer: their columns, their arrays, and the loop that evaluates them."""
