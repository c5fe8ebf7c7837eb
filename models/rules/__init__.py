"""How nodes are compared: bands of degree, NodeEx, EdgeEx; one rule per file, by a registry."""
