"""Which model version is in use, and which was when."""
