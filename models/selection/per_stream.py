"""`per = "stream"`: each node is decided by itself, and the promise is about all lists together.

People count false nodes over many lists. An average over runs does not bound that: empty lists
count as 0 in it. Here a threshold is tested on the references before any new node is looked at
(Angelopoulos, Bates, Candès, Jordan and Lei, Learn then test, 2021, by a fixed sequence): going
down from the highest references, "of the nodes above more than `share` are wrong" is rejected if

    P(Binomial(k, share) <= wrong references among the k highest)  <=  1 - CONFIDENCE

and the first k that is not rejected ends it. New nodes above the last threshold are listed. So of
the nodes that are listed in the long run at most `share` are wrong, but for one calibration in ten
whose nodes look too good. docs/mathematics.md has the proof, for independent nodes whose false
share falls with the score, and measures the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringfence.models.selection.base import SelectionScope
from ringfence.models.selection.references import Floats, Ints, Tail

__all__ = ["CONFIDENCE", "PER_STREAM", "PerStream", "first_tested"]

CONFIDENCE = 0.9
STEP = 1.15  # from one tested number of references to the next


def first_tested(may_be_wrong: float) -> int:
    """Return how many of the highest references are tested first: one of them may be wrong.

    >>> first_tested(0.2), first_tested(0.01)
    (18, 388)
    """
    right, number = 1 - may_be_wrong, 1
    while right**number + number * may_be_wrong * right ** (number - 1) > 1 - CONFIDENCE:
        number += 1
    return number


class PerStream(SelectionScope):
    """All lists together have the promise, for all but one calibration in ten."""

    name = "stream"
    is_proved = True
    needs_right = True
    can_hold = "it can hold anybody"

    def shares(self, tails: Sequence[Tail], nodes: int, may_be_wrong: float) -> Floats:
        """Return the largest upper bound of the false share from the top down to each node."""
        shares = np.ones(nodes)
        for tail in tails:
            shares[tail.due] = _bounds(tail, first_tested(may_be_wrong))[tail.place]
        return shares

    def references_needed(self, wrong_share: float, may_be_wrong: float) -> int:
        """Return how many right references the first test needs: all that it tests but one.

        >>> PER_STREAM.references_needed(0.06, 0.2), PER_STREAM.references_needed(0.06, 0.01)
        (17, 387)
        """
        return first_tested(may_be_wrong) - 1

    def sentence(self, share: float, wrong: str) -> str:
        """Say that the promise is about the listed nodes of all runs together."""
        return (
            f"of the listed nodes of all runs together, at most {100 * share:g} % are {wrong} in "
            f"the long run, with {100 * CONFIDENCE:g} % confidence in the calibration nodes"
        )


def _bounds(tail: Tail, first: int) -> Floats:
    """The bound at each place: that of the first tested number that reaches it [n + 1]."""
    from scipy.stats import beta

    references = len(tail.every) - 1
    bounds = np.ones(references + 1)
    tested = _tested(first, references)
    if not len(tested):
        return bounds
    start = references - tested
    wrong, every = tail.wrong[start], tail.every[start]
    upper = beta.ppf(CONFIDENCE, wrong + 1, np.maximum(every - wrong, 1e-9))
    upper = np.maximum.accumulate(np.where(every - wrong > 0, upper, 1.0))
    below = np.searchsorted(tested, references - np.arange(references + 1))
    reached = below < len(tested)
    bounds[reached] = upper[below[reached]]
    return bounds


def _tested(first: int, references: int) -> Ints:
    """Numbers of highest references that are tested, ascending."""
    numbers, size = [], float(first)
    while size <= references:
        numbers.append(int(size))
        size = max(size * STEP, size + 1)
    return np.array(numbers, np.int64)


PER_STREAM = PerStream()
