"""The scan over all runs leaves out runs that can't matter, and finds what the whole scan finds."""

import numpy as np
import pytest

from ringfence.models.guarantee import anytime
from ringfence.models.guarantee.anytime import Anytime, over_runs


def whole_scan(n, known, covered, alpha):
    """Every run asked, as the formula has it."""
    after = [np.cumsum(np.asarray(some)[::-1])[::-1] for some in (known, covered)]
    j = np.arange(len(known))
    evidence = anytime._log_evidence(n, *after, alpha) - np.log((j + 1.0) * (j + 2.0))
    best = int(np.argmax(evidence))
    if evidence[best] <= 0:
        return Anytime(1.0, 0)
    return Anytime(float(np.exp(-evidence[best])), best)


def sequences():
    rng = np.random.default_rng(5)
    for n in (9, 5, 60, 300.5, 4_000):
        for alpha in (0.05, 0.1, 0.3):
            for share in (1 - alpha, 1 - 1.2 * alpha, 1 - 3 * alpha, 1.0, 0.0):
                known = rng.integers(0, 80, rng.integers(1, 90))
                late = rng.integers(0, len(known))
                p = np.where(np.arange(len(known)) < late, 1 - alpha, share)
                yield n, known, rng.binomial(known, p), alpha


def test_the_scan_finds_what_the_whole_scan_finds():
    found = [(over_runs(*one), whole_scan(*one)) for one in sequences()]
    assert all(one == other for one, other in found)
    assert 10 < sum(one.p_value < 1 for one, _ in found) < len(found) - 10


def test_the_bound_is_above_all_evidence_and_leaves_most_runs_out():
    asked = left = 0
    for n, known, covered, alpha in sequences():
        after = [np.cumsum(some[::-1])[::-1] for some in (known, covered)]
        most = anytime._most_evidence(n, *after, alpha)
        assert (most >= anytime._log_evidence(n, *after, alpha)).all()
        j = np.arange(len(known))
        left += int(np.sum(most <= np.log((j + 1.0) * (j + 2.0))))
        asked += len(known)
    assert left > asked / 3


def test_a_bound_that_is_too_low_would_be_noticed(monkeypatch):
    """The negative control."""
    bound = anytime._most_evidence
    monkeypatch.setattr(anytime, "_most_evidence", lambda *given: bound(*given) - 8.0)
    assert any(over_runs(*one) != whole_scan(*one) for one in sequences())


@pytest.mark.parametrize("known", [[], [0], [0, 0, 0]])
def test_without_known_nodes_there_is_no_evidence(known):
    assert over_runs(100, known, known, 0.1) == Anytime(1.0, 0)
