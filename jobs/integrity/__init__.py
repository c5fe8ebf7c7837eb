"""Is everything on record still what was decided? verify, reconcile, and the py2neo check."""
