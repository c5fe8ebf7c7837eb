"""Reading several labels: raw columns, relations between labels, keys not yet known."""
