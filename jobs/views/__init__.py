"""Tables, charts, the view of a node and the status, independent of where they are shown."""
