"""Ways to calibrate that would break the promise they are asked for: refused, with the reason.

Each was measured; docs/mathematics.md has the figures.
"""

from __future__ import annotations

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.conformal import ConformalSettings
from ringfence.jobs.project.promise import PromiseTerms


def require_calibration(settings: ConformalSettings, terms: PromiseTerms) -> None:
    """Refuse a half-life on a frozen set, and weights of one degree each with nodes that join."""
    if settings.drift_half_life_days is not None and terms.calibration_set == "frozen":
        raise ConfigError(
            found=f"[conformal] drift_half_life_days = {settings.drift_half_life_days:g} with a "
            "frozen calibration set",
            needed="calibration nodes that get younger: on a frozen set all weights shrink "
            "together, and every set is full after about seven half-lives (1,000 nodes)",
            next_step='set [conformal] calibration_set = "growing" or "window"; or remove the '
            "half-life",
        )
    if terms.rule == "EdgeEx" and terms.calibration_set != "frozen":
        raise ConfigError(
            found=f'[conformal] rule = "EdgeEx" with calibration_set = "{terms.calibration_set}"',
            needed="weights that fit how nodes were sampled: 1 / degree is right for ends of "
            "sampled edges, and nodes join the calibration as they are labelled",
            next_step='set [conformal] rule = "auto", or calibration_set = "frozen"',
        )
