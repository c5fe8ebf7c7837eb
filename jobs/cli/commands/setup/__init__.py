"""Verbs that prepare a graph and its stores for training."""
