"""Sets that a candidate would have given: only in SQL, for comparison with the version in use."""
