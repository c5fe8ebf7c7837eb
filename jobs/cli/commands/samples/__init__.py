"""Verbs that need no graph of your own: sample graphs, the embedded server, the paper."""
