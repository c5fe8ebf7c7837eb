"""A class that becomes known early, across the training of a new version.

The worlds of `test_versions` with two classes: `early` is known one run after the evaluation,
`late`, a quarter of the nodes, five runs after it, and late nodes conform less. When version b is
trained only early classes of the newest runs are known. Who calibrates is chosen by the functions
that training and scoring use.
"""

import numpy as np
import pytest

from ringfence.connector.records import KnownNode, Member, RunCount
from ringfence.jobs.scoring.calibration import calibration_set as calibration
from ringfence.jobs.scoring.calibration.calibration_set import choose_calibration
from ringfence.jobs.scoring.calibration.eligibility import Eligibility
from ringfence.jobs.scoring.calibration.settled_runs import settled_at_training, settled_members
from ringfence.models import hashing
from ringfence.models.calibration.sets.registry import calibration_set_named
from tests.known_nodes import ListedNodes
from tests.statistics.test_versions import ALPHA, SHARES, World

PLAN, TRAINED = "a" * 13 + "b" * 9, 14
PER_RUN, LABELLED, LAGS = 60, 400, np.array([1, 5])
CLASSES = ("early", "late")
LATE_SHARE = 0.25
WORLDS, SEQUENCES = 50, 20
FIRST, LATER = range(TRAINED, TRAINED + 3), range(TRAINED + 3, len(PLAN) + 1)


class EarlyWorld(World):
    """Nodes of two classes; `fair` False: the control, all calibration nodes of the training."""

    def __init__(self, rng, calibration_set, fair=True):
        self.late = (rng.random(LABELLED + PER_RUN * len(PLAN)) < LATE_SHARE).astype(np.int64)
        self.fair = fair
        super().__init__(PLAN, TRAINED, calibration_set, window=250, labelled=LABELLED)

    def divide(self, last_known):
        """Roles at the training of a, and at that of b: after the run before TRAINED."""
        done = TRAINED - 1 if last_known else 0
        known = (self.run_of == 0) | (self.run_of + LAGS[self.late] <= done)
        rows = np.flatnonzero(known)
        parts = hashing.split([self.keys[row] for row in rows], 1, SHARES)
        roles = {int(row): role for role, mask in parts.items() for row in rows[mask]}
        if self.calibration_set == "frozen" and self.fair and done:
            roles |= dict.fromkeys(self.unsettled(roles), "train")
        return roles

    def unsettled(self, roles):
        """Calibration nodes that a training under frozen calibration trains on instead."""
        known = self.known_at(TRAINED - 1, {}, {})
        ready = settled_at_training(ListedNodes(known).counts(), self.runs(TRAINED))
        seqs = {node.node_key: node.evaluated_in for node in known}
        base = [row for row, role in roles.items() if role == "calibration"]
        members = [Member(self.keys[row], "calibration", 0) for row in base]
        fair = {one.node_key for one in settled_members(members, seqs, ready)}
        return [row for row in base if self.keys[row] not in fair]

    def runs(self, seq):
        return [RunCount(s, 100 * s, PER_RUN, v) for s, v in enumerate(self.plan[: seq - 1], 1)]

    def known_at(self, last, roles, joined):
        """Evaluated nodes whose class was noticed by the time of a run."""
        rows = np.flatnonzero((self.run_of > 0) & (self.run_of + LAGS[self.late] <= last))
        return [
            KnownNode(
                key := self.keys[row],
                run := int(self.run_of[row]),
                CLASSES[self.late[row]],
                100 * (run + int(LAGS[self.late[row]])) - 50,
                joined.get(key),
                roles.get(row),
            )
            for row in rows.tolist()
        ]

    def base(self, version):
        own = self.roles[version].items()
        rows = [row for row, role in own if role == "calibration"]
        return [Member(self.keys[row], "calibration", int(self.late[row])) for row in rows]

    def play(self):
        for seq, version in enumerate(self.plan, start=1):
            chosen = choose_calibration(
                self.base(version),
                ListedNodes(self.known_at(seq, self.roles[version], self.joined[version])),
                self.runs(seq),
                CLASSES,
                kind=calibration_set_named(self.calibration_set),
                window_nodes=self.window,
                promised=(),
                eligible=Eligibility(version, 1, {"": SHARES}),
            )
            self.joined[version].update(dict.fromkeys((n.node_key for n in chosen.joining), seq))
            rows = {int(member.node_key[2:]) for member in chosen.members}
            self.calibrated.append(np.array(sorted(rows)))


@pytest.fixture(autouse=True)
def _runs_of_sixty(monkeypatch):
    monkeypatch.setattr("tests.statistics.test_versions.PER_RUN", PER_RUN)


def shortfalls(calibration_set, fair=True):
    """Coverage minus what the law expects, right after the training and later [worlds, 2]."""
    found = []
    for seed in range(WORLDS):
        rng = np.random.default_rng(seed)
        world = EarlyWorld(rng, calibration_set, fair)
        scores = rng.random((SEQUENCES, world.nodes)) - world.late
        both = {"a": scores, "b": scores}
        parts = [world.coverage(both, runs) for runs in (FIRST, LATER)]
        found.append([covered.mean() - expected for covered, expected in parts])
    return np.array(found)


@pytest.mark.statistics
@pytest.mark.parametrize("calibration_set", ["frozen", "growing", "window"])
def test_a_class_that_is_known_early_moves_no_coverage(calibration_set):
    found = shortfalls(calibration_set)
    spread = found.std(axis=0) / np.sqrt(WORLDS)
    assert (np.abs(found.mean(axis=0)) < 4 * spread).all(), (found.mean(axis=0), spread)
    assert (found.mean(axis=0) > -0.06 * ALPHA).all()


@pytest.mark.statistics
@pytest.mark.parametrize("calibration_set", ["frozen", "growing", "window"])
def test_calibrating_with_early_classes_of_unsettled_runs_breaks_the_promise(
    calibration_set, monkeypatch
):
    """The control: what was drawn at the training calibrates at once. The worlds are the same."""
    fair = shortfalls(calibration_set)
    monkeypatch.setattr(calibration, "settled_members", lambda base, *_: list(base))
    unfair = shortfalls(calibration_set, fair=False)
    first, later = (unfair - fair).T
    assert first.mean() < -4 * first.std() / np.sqrt(WORLDS)
    if calibration_set == "frozen":  # for good, and by more than a point
        assert later.mean() < -4 * later.std() / np.sqrt(WORLDS)
        assert unfair.mean() < -0.01
