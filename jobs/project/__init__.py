"""An open project: settings, graph, audit store, and the write session."""
