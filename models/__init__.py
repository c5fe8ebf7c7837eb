"""Pure computing on arrays: networks, scores, thresholds, guarantees."""
