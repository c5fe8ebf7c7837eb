"""Conformity scores by the name that a configuration uses: one score, one file, one line here."""

from __future__ import annotations

from ringfence.models.scores.aps import aps, aps_true, fill_aps
from ringfence.models.scores.base import ConformityScore
from ringfence.models.scores.daps import daps_of_aps, daps_of_aps_true
from ringfence.models.scores.dtps import dtps, dtps_true
from ringfence.models.scores.raps import fill_raps, raps, raps_true
from ringfence.models.scores.tps import fill_tps, tps_true_without_u, tps_without_u

__all__ = ["SCORES", "score_named"]

_DIFFUSION = ("edge_index", "diffusion")

SCORES: dict[str, ConformityScore] = {
    score.name: score
    for score in (
        ConformityScore("APS", aps, aps_true, fill=fill_aps),
        ConformityScore("TPS", tps_without_u, tps_true_without_u, fill=fill_tps),
        ConformityScore("RAPS", raps, raps_true, ("penalty", "k_reg"), fill=fill_raps),
        ConformityScore("DAPS", daps_of_aps, daps_of_aps_true, _DIFFUSION, True, base="APS"),
        ConformityScore("DTPS", dtps, dtps_true, _DIFFUSION, True, base="TPS"),
    )
}


def score_named(name: str) -> ConformityScore:
    """Return the score called ``name``.

    >>> score_named("RAPS").options
    ('penalty', 'k_reg')
    """
    if name not in SCORES:
        raise ValueError(f"score {name!r} is unknown; needed: one of {', '.join(SCORES)}")
    return SCORES[name]
