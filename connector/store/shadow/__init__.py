"""Sets that a candidate would have given: in SQL alone, beside those of the version in use."""
