"""Small reads of the graph for pages, exports and explanations."""
