"""`ringfence score`: who is due, the network's outputs, sets, and how they reach both stores."""
