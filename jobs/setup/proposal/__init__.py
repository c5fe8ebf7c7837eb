"""What `ringfence init` proposes from a sample of the graph, each part with its reason."""
