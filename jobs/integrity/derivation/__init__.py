"""Entries of the chain derived again from those before them."""
