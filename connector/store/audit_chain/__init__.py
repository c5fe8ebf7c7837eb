"""Around the chain: who wrote an entry, what changed, what `verify` reads, keys and rotation."""
