"""The databases: reading changes, writing sets, the SQL store, the embedded server."""
