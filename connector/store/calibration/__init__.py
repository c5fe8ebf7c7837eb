"""Nodes that calibrate a model beyond those of its training."""
