"""Training a network: one `train` for every network, one sampler per kind of graph."""
