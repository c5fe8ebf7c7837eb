"""Writing to the graph: runs and sets, coverage, behind the fence; sample graphs in bulk."""
