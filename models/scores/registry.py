"""Conformity scores by the name that a configuration uses: one score, one file, one line here."""

from __future__ import annotations

from ringfence.models.scores.aps import APS
from ringfence.models.scores.base import ConformityScore
from ringfence.models.scores.daps import DAPS
from ringfence.models.scores.dtps import DTPS
from ringfence.models.scores.raps import RAPS
from ringfence.models.scores.tps import TPS

__all__ = ["REFERENCE", "SCORES", "score_named"]

SCORES: dict[str, ConformityScore] = {score.name: score for score in (APS, TPS, RAPS, DAPS, DTPS)}

REFERENCE = APS
"""The score of the paper's rules, with which others are compared when a training chooses one."""


def score_named(name: str) -> ConformityScore:
    """Return the score called ``name``.

    >>> score_named("RAPS").options
    ('penalty', 'k_reg')
    """
    if name not in SCORES:
        raise ValueError(f"score {name!r} is unknown; needed: one of {', '.join(SCORES)}")
    return SCORES[name]
