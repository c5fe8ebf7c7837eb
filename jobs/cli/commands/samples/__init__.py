"""Verbs that need no graph of one's own: sample graphs, the embedded server, the paper."""
