"""The calibration nodes of a run."""
