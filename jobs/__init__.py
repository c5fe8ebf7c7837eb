"""What happens when: train, score, audit, configuration, command line."""
