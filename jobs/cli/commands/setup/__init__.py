"""Verbs that bring a graph and its stores to where a model can be trained."""
