"""Numbers that belong to a node: a keyed hash of its key, never a random generator.

The u of a node's score and the part of the split that it falls into must not depend on the batch
it came in, on the order of the rows or on the run, and an auditor must be able to recompute them
years later. So both are BLAKE2b of the node's key, under a key made from (seed, purpose).

Whoever knows the seed can compute the number of any key, also of one that is yet to be chosen. So
the product's seed for u is a secret (`jobs.project.node_seed`); that of the split is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

SCORE = "score"
SPLIT = "split"
HOLDOUT = "holdout"
SAMPLE = "audit sample"


def uniforms(keys: Iterable[str], seed: int | str, purpose: str) -> NDArray[np.float64]:
    """Give each key its own uniform number in [0, 1), the same one in every run.

    x = floor(h / 2**11) / 2**53, h the first 64 bits (big-endian) of BLAKE2b(key), keyed by
    BLAKE2b of (seed, purpose). Numbers of different purposes are independent of each other.

    Args:
        keys: typed key strings such as "s:abc" or "i:12".
        seed: a seed, or a seed key as a number; 7 and "7" are different seeds.
        purpose: what the numbers are for: ``SCORE`` (u of a score), ``SPLIT``, or your own.

    Returns:
        float64 [n].

    >>> uniforms(["s:a", "s:b"], seed=7, purpose=SCORE).round(6).tolist()
    [0.55813, 0.345571]
    """
    keyed = hashlib.blake2b(digest_size=8, key=_secret(seed, purpose))
    digests = bytearray()
    for key in keys:
        hasher = keyed.copy()
        hasher.update(key.encode())
        digests += hasher.digest()
    bits = np.frombuffer(digests, dtype=">u8").astype(np.uint64)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def split(
    keys: Iterable[str], seed: int | str, fractions: Mapping[str, float]
) -> dict[str, NDArray[np.bool_]]:
    """Split keys into named parts by their keyed hash.

    A key's part depends on the key, the seed and the fractions alone: later arrivals move no node
    from calibration to training.

    Args:
        keys: typed key strings.
        seed: the project's seed.
        fractions: part -> share, in order; the shares add up to 1.

    Returns:
        part -> bool mask [n]; the masks are disjoint and together hold every key.

    >>> parts = split(["s:a", "s:b", "s:c"], seed=7, fractions={"train": 0.5, "calibration": 0.5})
    >>> {name: mask.tolist() for name, mask in parts.items()}
    {'train': [True, True, False], 'calibration': [False, False, True]}
    """
    edges = _edges(fractions)
    part = np.searchsorted(edges, uniforms(keys, seed, SPLIT), side="right")
    return {name: part == i for i, name in enumerate(fractions)}


def drawn(keys: Iterable[str], seed: int | str, purpose: str, share: float) -> NDArray[np.bool_]:
    """Draw a share of the keys: those whose own number lies below it.

    A key is drawn or not whatever other keys there are, and a larger share draws all that a smaller
    one draws.

    >>> drawn(["s:a", "s:b", "s:c"], seed="accounts", purpose=HOLDOUT, share=0.5).tolist()
    [False, True, True]
    """
    return np.asarray(uniforms(keys, seed, purpose) < share)


def draw_keys(keys: Sequence[str], seed: int | str, purpose: str, count: int) -> list[str]:
    """Draw `count` of the keys, those with the smallest numbers; all of them where there are fewer.

    Which keys are drawn depends on nothing but the keys, the seed and the purpose: every subset of
    that size is as likely as any other for who does not know the seed, whatever the nodes are like.

    >>> draw_keys(["s:a", "s:b", "s:c"], seed=7, purpose=SAMPLE, count=2)
    ['s:b', 's:c']
    >>> draw_keys(["s:a", "s:b", "s:c"], seed=7, purpose=SAMPLE, count=9)
    ['s:a', 's:b', 's:c']
    """
    if count >= len(keys):
        return sorted(keys)
    smallest = np.argsort(uniforms(keys, seed, purpose), kind="stable")[: max(count, 0)]
    return sorted(keys[row] for row in smallest.tolist())


def _secret(seed: int | str, purpose: str) -> bytes:
    # repr keeps 7 and "7" apart, and quotes whatever a string seed or purpose holds
    return hashlib.blake2b(
        repr((seed, purpose)).encode(), digest_size=32, person=b"ringfence"
    ).digest()


def _edges(fractions: Mapping[str, float]) -> NDArray[np.float64]:
    shares = [Fraction(str(share)) for share in fractions.values()]
    total = sum(shares, Fraction(0))
    if not shares or min(shares) < 0 or abs(total - 1) > Fraction(1, 10**9):
        raise ValueError(
            f"split fractions {dict(fractions)} add up to {float(total):g}; "
            "they must be at least 0 and add up to 1: change them so that they do"
        )
    return np.array([float(sum(shares[: i + 1])) for i in range(len(shares) - 1)])
