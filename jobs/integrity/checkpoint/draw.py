"""The random sample of older runs: which are drawn, and the chance that an edit shows.

Runs are drawn without replacement by a hash with the chain's key and a fresh nonce: whoever can
write the databases alone does not know which come next. Of N runs s are drawn; an edit in k of them
is met with the hypergeometric chance

    1 - C(N - k, s) / C(N, s),  about 1 - (1 - s / N)^k

>>> draw({1: 100, 2: 100, 3: 100, 4: 100}, 150, b"key", "nonce").of
4
>>> f"{chance_of_notice(8760, 100, 1):.4f} {chance_of_notice(8760, 100, 100):.3f}"
'0.0114 0.685'
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass

EDITED_RUNS = (1, 10, 100)
"""The numbers of edited runs that the output states a chance for."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The runs that were drawn of all older ones, with the number of their nodes, and the nonce."""

    runs: tuple[int, ...] = ()
    of: int = 0
    nodes: int = 0
    nonce: str = ""

    def share(self, units: int) -> int:
        """Return how many of some other units are drawn: at least the share of the runs."""
        return min(units, math.ceil(units * len(self.runs) / self.of)) if self.of else 0


def draw(nodes: Mapping[int, int], wanted: int, key: bytes, nonce: str) -> Sample:
    """Draw so many runs that about `wanted` nodes are expected in them; none where that is 0.

    How many follows from the sizes of all runs and not from the draw, so that the chance is exact.

    Args:
        nodes: the number of nodes by run, of the runs to draw from.
        wanted: how many nodes should be compared.
        key: the chain's.
        nonce: a fresh text.
    """
    runs = sorted(nodes)
    if not runs or wanted <= 0:
        return Sample((), len(runs), 0, nonce)
    mean = max(1.0, sum(nodes.values()) / len(runs))
    count = min(len(runs), math.ceil(wanted / mean))
    drawn = tuple(sorted(pick(runs, count, key, nonce)))
    return Sample(drawn, len(runs), sum(nodes[seq] for seq in drawn), nonce)


def pick(units: list[int], count: int, key: bytes, nonce: str) -> list[int]:
    """Return `count` units in the order of their keyed hash."""

    def place(unit: int) -> bytes:
        return hmac.new(key, f"sample\n{nonce}\n{unit}".encode(), hashlib.sha256).digest()

    return sorted(units, key=place)[:count]


def chance_of_notice(units: int, drawn: int, edited: int) -> float:
    """Return the chance that at least one of `edited` units is among those drawn.

    >>> chance_of_notice(10, 2, 1), chance_of_notice(10, 2, 9), chance_of_notice(10, 0, 5)
    (0.2, 1.0, 0.0)
    """
    edited = min(edited, units)
    missed = 1.0
    for place in range(min(drawn, units)):
        left = units - edited - place
        if left <= 0:
            return 1.0
        missed *= left / (units - place)
    return round(1.0 - missed, 12)


def chances_of_notice(sample: Sample) -> dict[int, float]:
    """Return the chance that an edit is noticed, by how many older runs it is in.

    >>> chances_of_notice(Sample((3, 7), 10, 40))
    {1: 0.2, 10: 1.0}
    """
    edited = [count for count in EDITED_RUNS if count <= sample.of]
    return {n: chance_of_notice(sample.of, len(sample.runs), n) for n in edited}


def describe_chances(chances: Mapping[int, float]) -> str:
    """Say with which chance an edit of older runs is noticed.

    >>> describe_chances({1: 0.2, 10: 1.0})
    'an edit is noticed with chance 20 % in 1 older run, 100 % in 10'
    """
    (first, *rest) = (f"{_percent(chance)} in {count}" for count, chance in chances.items())
    return "an edit is noticed with chance " + ", ".join([f"{first} older run", *rest])


def _percent(chance: float) -> str:
    """Return a chance without rounding it up to certainty.

    >>> _percent(0.99999), _percent(1.0), _percent(0.0114)
    ('99.99 %', '100 %', '1.14 %')
    """
    if chance >= 1.0:
        return "100 %"
    return f"{math.floor(min(chance, 0.9999) * 10_000) / 100:g} %"
