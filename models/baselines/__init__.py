"""What a model has to beat: the largest class, and boosted trees on columns without a network."""
