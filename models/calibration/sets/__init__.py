"""Which nodes calibrate later runs: frozen, growing, window; one set per file, by a registry."""
