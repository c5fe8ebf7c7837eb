"""Sample data: a graph of payment accounts, a made-up audit store, the demo."""
