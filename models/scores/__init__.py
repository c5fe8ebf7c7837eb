"""Conformity scores: how well a class agrees with what the network says of a node."""

from ringfence.models.scores.aps import aps, aps_true
from ringfence.models.scores.base import ConformityScore, entropies, softmax64
from ringfence.models.scores.daps import daps
from ringfence.models.scores.raps import raps, raps_true
from ringfence.models.scores.registry import SCORES, score_named
from ringfence.models.scores.tps import tps, tps_true

__all__ = [
    "SCORES",
    "ConformityScore",
    "aps",
    "aps_true",
    "daps",
    "entropies",
    "raps",
    "raps_true",
    "score_named",
    "softmax64",
    "tps",
    "tps_true",
]
