"""Training a network: full batch, mini-batches, the loop below both."""
