"""`ringfence.toml`: every setting, reading it, and its reference page."""
