"""Which neighbours and columns move a prediction, by exact counterfactuals."""
