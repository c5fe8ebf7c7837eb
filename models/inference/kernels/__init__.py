"""Compiled loops of the forward pass, one module per network: nothing is materialised per edge.

A first layer gathers its neighbours' transformed features, adds bias and activation, and multiplies
by the second layer's weights at once, so the hidden layer never leaves the cache. Rows ``start`` to
``stop`` of the list are worked on: threads share the list. ``offsets`` and ``sources`` are those of
the rows; ``first`` and ``second`` are tables of the whole graph.
"""
