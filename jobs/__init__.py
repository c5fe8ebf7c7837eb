"""The workflows: train, score, audit, configuration, command line."""
