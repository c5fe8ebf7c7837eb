"""What coverage is promised, the law that it follows, and verdicts on what was counted."""

from ringfence.models.guarantee.law import (
    Guarantee,
    calibration_odds,
    coverage_band,
    coverage_loss,
    coverage_p_value,
    effective_sample_size,
    expected_coverage,
    guarantee,
    smallest_n,
    swap_distance,
)

__all__ = [
    "Guarantee",
    "calibration_odds",
    "coverage_band",
    "coverage_loss",
    "coverage_p_value",
    "effective_sample_size",
    "expected_coverage",
    "guarantee",
    "smallest_n",
    "swap_distance",
]
