"""Random graphs with a known truth, for demos and tests."""
