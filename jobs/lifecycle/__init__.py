"""A model's life cycle: versions, the one in use, cards, comparisons, promotion and rollback."""
