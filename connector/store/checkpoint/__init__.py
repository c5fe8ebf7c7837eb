"""Checkpoints of verifications in the chain, and the rows that came after one."""
