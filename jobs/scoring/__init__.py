"""`ringfence score`: due nodes, the network's outputs, sets, and how they reach both stores."""
