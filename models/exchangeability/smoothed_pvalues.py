"""Smoothed conformal p-values of true classes: uniform, and independent of each other.

A node whose class became known has a rank: how many of n reference nodes of known class conform
less than it does on the same graph. Under exchangeability the rank is uniform on 0..n, so p = (rank
+ u) / (n + 1), u ~ U(0, 1), is uniform on (0, 1). That holds for each node alone. Nodes that are
compared with the same reference have p-values that are not independent: with an unlucky reference
all of them are biased the same way for ever, and a test that takes them as independent raises a
false alarm sooner or later (at 1 % nominal: 5 to 7 times in 10 with n = 30 and 5,000 labels).

Two things make them independent.

1. Within one run. The n reference scores cut the line into n + 1 gaps, and the gaps into which
   later nodes fall are the draws of Polya's urn:

       P(next rank = k | ranks so far) = (1 + how often k came so far) / (n + 1 + number so far)

   `Urn` puts each rank through that predictive distribution. Ranks are put together into at most
   `bins` groups of neighbours (groups of gaps are again an urn, so it stays exact), which makes the
   state small and the cost per label constant.

2. From run to run. New nodes move all scores, so ranks on an earlier graph say little about the
   gaps on this one. The reference of a run is therefore every node whose class was known before,
   the calibration nodes and those that were compared in earlier runs, with scores on the graph of
   this run; or a uniformly random part of them, where there are many. Given which nodes those are,
   the order in which they came is uniform, so earlier p-values, which depend on that order, tell
   nothing about the next one. `smoothed_p_values` is one run's step.

An urn that is kept from run to run instead (`Urn.draw_all` on stored ranks) is exact where scores
do not move: a network without message passing, or a graph that stands still.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ringfence.models import compile as compilation

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Groups of ranks that an urn tells apart.
RANK_BINS = 100


@dataclass(frozen=True, slots=True)
class Urn:
    """What is known about the next rank: the size of the reference and the ranks so far.

    >>> urn = Urn.start(reference=9)
    >>> p, urn = urn.draw(rank=3, u=0.5)
    >>> p
    0.35
    >>> p, urn = urn.draw(rank=3, u=0.5)  # 3 is now twice as likely as any other rank
    >>> round(p, 4)
    0.3636
    """

    reference: int
    seen: tuple[int, ...]

    @classmethod
    def start(cls, reference: int, bins: int = RANK_BINS) -> Urn:
        """The urn of a reference with which no node has been compared yet."""
        if reference < 0 or bins < 1:
            raise ValueError(f"{reference} reference nodes in {bins} bins; needed: >= 0 and >= 1")
        return cls(reference, (0,) * min(bins, reference + 1))

    def draw(self, rank: int, u: float) -> tuple[float, Urn]:
        """The p-value of the next rank (0..reference), and the urn that has seen it."""
        p, urn = self._after(np.array([rank]), np.array([u]), compiled=False)
        return float(p[0]), urn

    def draw_all(self, ranks: npt.ArrayLike, u: npt.ArrayLike) -> tuple[Floats, Urn]:
        """p-values [m] of ranks [m] in the order in which classes became known, and the urn.

        The same bits as m calls of `draw`.
        """
        return self._after(np.asarray(ranks, np.int64), np.asarray(u, np.float64), compiled=True)

    def _after(self, ranks: Ints, u: Floats, *, compiled: bool) -> tuple[Floats, Urn]:
        _check_u(ranks, u)
        if len(ranks) and (ranks.min() < 0 or ranks.max() > self.reference):
            raise ValueError(
                f"ranks from {ranks.min()} to {ranks.max()}; with {self.reference} reference nodes "
                f"they are 0 to {self.reference}. Is this the reference of another run?"
            )
        seen = np.array(self.seen, dtype=np.int64)
        p = np.empty(len(ranks))
        (_draw_compiled if compiled else _draw)(ranks, u, self.reference + 1, seen, p)
        return p, Urn(self.reference, tuple(seen.tolist()))


def _draw(ranks: Ints, u: Floats, gaps: int, seen: Ints, p: Floats) -> None:
    """Fill p and count the ranks into seen. All sums are of whole numbers, so they are exact."""
    bins = len(seen)
    total = gaps
    for b in range(bins):
        total += seen[b]
    for i in range(len(ranks)):
        bin_ = ((ranks[i] + 1) * bins - 1) // gaps  # bin b begins at rank b * gaps // bins
        start = bin_ * gaps // bins
        size = (bin_ + 1) * gaps // bins - start + seen[bin_]
        below = start
        for b in range(bin_):
            below += seen[b]
        p[i] = (below + u[i] * size) / total
        seen[bin_] += 1
        total += 1


_draw_compiled = compilation.compiled(_draw)


def smoothed_p_values(
    reference_scores: npt.ArrayLike,
    scores: npt.ArrayLike,
    u: npt.ArrayLike,
    *,
    reference_strata: npt.ArrayLike | None = None,
    strata: npt.ArrayLike | None = None,
) -> Floats:
    """Independent uniform p-values [m] of the nodes whose class became known since the last run.

    reference_scores [n] are those of nodes whose class was known before, scores [m] those of the
    new ones, all for the true class on the graph of this run. u [m] in (0, 1) is one number per
    node, another than the one inside a randomised score. Small p: conforms less than others did.

    For an edge-exchangeable graph give `degree_strata` of both: nodes are compared with nodes of
    about the same degree, since hubs come first there. A stratum without reference gives p = u.

    >>> smoothed_p_values([0.1, 0.2, 0.3, 0.4], [0.05, 0.35], u=[0.5, 0.5]).round(3).tolist()
    [0.1, 0.75]
    """
    reference = np.asarray(reference_scores, dtype=np.float64)
    scores, u = np.asarray(scores, dtype=np.float64), np.asarray(u, dtype=np.float64)
    _check_u(scores, u)
    if (reference_strata is None) != (strata is None):
        raise ValueError("strata of one side only; give those of the reference and of the nodes")
    if strata is None:
        return _against(reference, scores, u)
    p = np.empty(len(scores))
    of_reference, of_nodes = np.asarray(reference_strata), np.asarray(strata)
    for stratum in np.unique(of_nodes):
        inside = of_nodes == stratum
        p[inside] = _against(reference[of_reference == stratum], scores[inside], u[inside])
    return p


def _against(reference: Floats, scores: Floats, u: Floats) -> Floats:
    """One urn: a tie with k scores has k + 1 equal places; u picks one, its rest smooths."""
    ordered = np.sort(reference)
    below = np.searchsorted(ordered, scores, side="left")
    places = np.searchsorted(ordered, scores, side="right") - below + 1
    place = np.minimum(np.floor(u * places), places - 1)
    rest = np.clip(u * places - place, 2.0**-53, 1.0 - 2.0**-53)
    return Urn.start(len(reference)).draw_all(below + place.astype(np.int64), rest)[0]


def degree_strata(degrees: npt.ArrayLike) -> Ints:
    """Strata of nodes by degree, two per doubling: int64, floor(2 log2(degree)).

    >>> degree_strata([1, 2, 3, 4, 100]).tolist()
    [0, 2, 3, 4, 13]
    """
    degrees = np.maximum(np.asarray(degrees, dtype=np.float64), 1.0)
    return np.floor(2.0 * np.log2(degrees)).astype(np.int64)


def reference_sample(known: int, cap: int, *, seed: int) -> Ints:
    """Which of the `known` nodes of known class serve as reference: at most cap, in order.

    Drawn uniformly from all of them, calibration nodes or not: keeping the calibration nodes and
    sampling only the others would compare every run with the same nodes again.

    >>> reference_sample(3, cap=5, seed=1).tolist(), len(reference_sample(9, cap=5, seed=1))
    ([0, 1, 2], 5)
    """
    if known <= cap:
        return np.arange(known)
    return np.sort(np.random.default_rng(seed).choice(known, cap, replace=False))


def ranks_of_p_values(p_values: npt.ArrayLike, calibration: int) -> Ints:
    """Library only: ranks [m] from stored p = (rank + 1) / (calibration + 1).

    For `Urn.draw_all` where scores do not move from run to run (see the top of this module).

    >>> ranks_of_p_values([0.1, 0.4, 1.0], calibration=9).tolist()
    [0, 3, 9]
    """
    p = np.asarray(p_values, dtype=np.float64)
    ranks = np.rint(p * (calibration + 1)).astype(np.int64) - 1
    if not np.allclose((ranks + 1) / (calibration + 1), p, rtol=0, atol=1e-9):
        raise ValueError(
            f"p-values that are no multiples of 1/{calibration + 1}; unweighted ones of runs with "
            f"{calibration} calibration nodes are needed"
        )
    return ranks


def _check_u(nodes: npt.NDArray[np.generic], u: Floats) -> None:
    if nodes.shape != u.shape or u.ndim != 1:
        raise ValueError(f"{nodes.shape} nodes and {u.shape} u; one u per node is needed")
    if not ((u > 0) & (u < 1)).all():
        raise ValueError("u outside (0, 1); derive one uniform number per node from its key")
