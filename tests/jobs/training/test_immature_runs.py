"""Runs of which only early classes are known at a training, under frozen calibration."""

from types import SimpleNamespace

import numpy as np
import pytest

from ringfence.connector.records import KnownNode, RunCount
from ringfence.jobs.config.settings import ConformalSettings
from ringfence.jobs.training import immature_runs
from ringfence.jobs.training.immature_runs import calibrate_settled
from ringfence.jobs.training.split import Split
from tests.known_nodes import ListedNodes, fitting_record

RUNS = [RunCount(seq, seq * 100, 10) for seq in range(1, 9)]
EARLY = (1_900, 1_901)
"""Rows of the last run; the others are of run 1, or were never evaluated."""


@pytest.fixture
def train(monkeypatch):
    """A training of 200 calibration nodes, two of them of the last run."""
    nodes = [KnownNode(f"i:{row}", 8, "a", 850, None, None) for row in EARLY]
    nodes += [KnownNode(f"i:{row}", 1, "a", 150, None, None) for row in range(900, 905)]
    monkeypatch.setattr(immature_runs, "KnownNodes", lambda *_: ListedNodes(nodes))
    monkeypatch.setattr(immature_runs, "run_counts", lambda *_: RUNS)
    monkeypatch.setattr(immature_runs, "on_record", fitting_record)

    def keys_of(rows):
        return [f"i:{row}" for row in rows]

    mirror = SimpleNamespace(keys=SimpleNamespace(take=keys_of, column=keys_of), incarnations={})

    def split_by(calibration=200, **values):
        rows = np.array([*range(900, 900 + calibration - 2), *EARLY])
        split = Split(("a", "b"), np.zeros(2_000, np.int64), np.array([1]), np.array([2]), rows)
        settings = ConformalSettings(**{"rule": "NodeEx", "calibration_set": "frozen"} | values)
        workspace = SimpleNamespace(
            settings=SimpleNamespace(conformal=settings), store=None, project="p"
        )
        return split, calibrate_settled(workspace, mirror, split)

    return split_by


def test_their_nodes_are_trained_on_and_do_not_calibrate(train):
    before, (after, words) = train(calibration=110)
    assert set(before.calibration) - set(after.calibration) == set(EARLY)
    assert after.train.tolist() == [1, *EARLY]
    assert "2 labelled nodes are of runs whose other classes are not known yet" in words


@pytest.mark.parametrize(
    "values", [{"calibration_set": "window"}, {"promise": "class"}], ids=["lives", "class"]
)
def test_they_stay_where_they_can_wait_or_calibrate_themselves(train, values):
    before, (after, words) = train(calibration=110, **values)
    assert (after, words) == (before, "")


def test_they_calibrate_where_few_others_would_be_left(train):
    before, (after, words) = train(calibration=50)
    assert after is before
    assert "they calibrate all the same" in words
