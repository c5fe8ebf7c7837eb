"""Beside the chain: who wrote an entry, what changed, what `verify` reads, what must fit."""
