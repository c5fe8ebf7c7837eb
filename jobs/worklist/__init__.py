"""Nodes that a person should look at, in order; and what people did with them."""
