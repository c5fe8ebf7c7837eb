"""Reading the graph into the mirror: what is new, all of it, or the rest of a read that died."""
