"""Comparison of ways to predict the same nodes: metrics, paired intervals, which is better."""
