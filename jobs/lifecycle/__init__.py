"""A model's life: which version is in use, what it is, and how it came there."""
