"""Coverage across promotions and rollbacks: sequences of two and more versions on the same nodes.

Who calibrates which run is chosen by the function that scoring uses, from keys, runs and times
alone, so one choice serves many draws of the scores. A version learns its training nodes by heart
to some degree: their scores are better than those of nodes that it never saw. Classes are known two
runs after the evaluation. Version `a` learns from the first labelled nodes, `b` from all that are
known when it is trained, those that `a` evaluated included.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from ringfence.connector.records import KnownNode, Member, RunCount
from ringfence.jobs.scoring.calibration.calibration_set import choose_calibration
from ringfence.jobs.scoring.calibration.eligibility import Eligibility
from ringfence.models import hashing
from ringfence.models.calibration.sets.registry import calibration_set_named
from tests.known_nodes import ListedNodes

ALPHA, PER_RUN, LAG = 0.1, 20, 2
SHARES = {"train": 0.5, "validation": 0.2, "calibration": 0.3}
CLASS = "x"


@dataclass
class World:
    """Nodes, their runs, and what each version took from its training.

    plan: the version of each run; b is trained before the run number `trained`.
    forget_roles: the control: nobody remembers who took part in a training.
    consulted: runs that helped to choose b.
    """

    plan: str
    trained: int
    calibration_set: str = "window"
    window: int = 150
    labelled: int = 400
    forget_roles: bool = False
    consulted: frozenset[int] = frozenset()
    calibrated: list = field(default_factory=list)

    def __post_init__(self):
        self.nodes = self.labelled + PER_RUN * len(self.plan)
        self.keys = [f"i:{i}" for i in range(self.nodes)]
        self.run_of = np.repeat(
            np.arange(len(self.plan) + 1), [self.labelled, *[PER_RUN] * len(self.plan)]
        )
        self.roles = {"a": self.divide(0), "b": self.divide(self.trained - 1 - LAG)}
        self.joined = {"a": {}, "b": {}}
        self.play()

    def divide(self, last_known):
        """Roles of the nodes that are known at a training, by row."""
        rows = np.flatnonzero(self.run_of <= last_known)
        parts = hashing.split([self.keys[row] for row in rows], 1, SHARES)
        return {int(row): role for role, mask in parts.items() for row in rows[mask]}

    def play(self):
        """Choose the calibration nodes of every run; joined nodes are remembered."""
        for seq, version in enumerate(self.plan, start=1):
            chosen = choose_calibration(
                self.base(version),
                ListedNodes(self.known(version, seq)),
                [RunCount(s, 100 * s, PER_RUN, v) for s, v in enumerate(self.plan[: seq - 1], 1)],
                (CLASS,),
                kind=calibration_set_named(self.calibration_set),
                window_nodes=self.window,
                promised=(),
                eligible=Eligibility(
                    version, 1, {"": SHARES}, self.consulted if version == "b" else frozenset()
                ),
            )
            self.joined[version].update(dict.fromkeys((n.node_key for n in chosen.joining), seq))
            rows = {int(member.node_key[2:]) for member in chosen.members}
            self.calibrated.append(np.array(sorted(rows)))

    def base(self, version):
        own = self.roles[version].items()
        rows = [row for row, role in own if role == "calibration"]
        return [Member(self.keys[row], "calibration", 0) for row in rows]

    def known(self, version, seq):
        """Evaluated nodes whose class is known when run `seq` begins."""
        rows = np.flatnonzero((self.run_of > 0) & (self.run_of < seq - LAG + 1))
        roles = {} if self.forget_roles else self.roles[version]
        found = []
        for row in rows.tolist():
            key, run = self.keys[row], int(self.run_of[row])
            joined = self.joined[version].get(key)
            noticed = 100 * (run + LAG) - 50
            found.append(KnownNode(key, run, CLASS, noticed, joined, roles.get(row)))
        return found

    def learnt(self, version):
        """Rows that a version was trained or stopped by."""
        own = self.roles[version].items()
        return np.array([row for row, role in own if role in ("train", "validation")])

    def coverage(self, scores, runs):
        """Coverage of some runs in each sequence [sequences], and what the law expects."""
        hits, expected = [], []
        for seq in runs:
            rows = self.calibrated[seq - 1]
            own = scores[self.plan[seq - 1]]
            n = len(rows)
            rank = int(ALPHA * (n + 1) + 1e-9)
            threshold = np.partition(own[:, rows], rank - 1, axis=1)[:, rank - 1]
            hits.append((own[:, self.run_of == seq] >= threshold[:, None]).mean(axis=1))
            expected.append(1 - rank / (n + 1))
        return np.mean(hits, axis=0), float(np.mean(expected))


def by_heart(world, version, rng, sequences):
    """Scores that are better at what a version learnt."""
    scores = rng.random((sequences, world.nodes))
    learnt = world.learnt(version)
    scores[:, learnt] = 1 - 0.4 * (1 - scores[:, learnt])
    return scores


def scores_of(world, seed, sequences):
    """Scores of both versions: one half is the node's own, the other the version's."""
    rng = np.random.default_rng(seed)
    own = rng.random((sequences, world.nodes))
    return {name: own + by_heart(world, name, rng, sequences) for name in ("a", "b")}


def phases(plan):
    """Runs of one version in a row."""
    ends = [i for i in range(1, len(plan)) if plan[i] != plan[i - 1]]
    return [range(x + 1, y + 1) for x, y in zip([0, *ends], [*ends, len(plan)], strict=True)]


def require_coverage(world, scores, runs):
    covered, expected = world.coverage(scores, runs)
    spread = covered.std() / np.sqrt(len(covered))
    assert abs(covered.mean() - expected) < 4 * spread, (runs, covered.mean(), expected)
    assert covered.mean() > 1 - ALPHA - 3 * spread


STORY = "a" * 12 + "b" * 8 + "a" * 8 + "b" * 6


@pytest.mark.parametrize("calibration_set", ["frozen", "growing", "window"])
def test_coverage_holds_in_every_phase_of_promotions_and_rollbacks(calibration_set):
    world = World(STORY, trained=11, calibration_set=calibration_set)
    scores = scores_of(world, 1, sequences=300)
    for runs in phases(STORY):
        require_coverage(world, scores, runs)
    first_of_b, back_to_a = world.calibrated[12], world.calibrated[24]
    by_other = {"first": world.run_of[first_of_b], "back": world.run_of[back_to_a]}
    if calibration_set != "frozen":
        assert (by_other["first"] > 0).any()
        assert np.isin(by_other["back"], list(phases(STORY)[1])).any()
    for seq, version in enumerate(STORY, start=1):
        rows = world.calibrated[seq - 1]
        assert not np.isin(rows, world.learnt(version)).any()
        assert (world.run_of[rows] < seq).all()


def test_calibrating_on_what_the_version_learnt_breaks_the_promise():
    """The control: evaluated nodes that became known calibrate, learnt by the version or not."""
    world = World(STORY, trained=11, calibration_set="growing", forget_roles=True)
    covered, _ = world.coverage(scores_of(world, 2, sequences=300), phases(STORY)[1])
    assert covered.mean() < 1 - ALPHA - 0.03


CANDIDATES, SHADOWED, AFTER = 20, range(13, 21), range(21, 23)
CHOSEN = {"plan": "a" * 20 + "b" * 2, "trained": 12, "window": 100, "labelled": 1_200}


def chosen_by_shadow(world, seed, sequences):
    """Scores of candidates, of which each sequence takes the one whose shadow sets covered most.

    Candidates are equally good and differ by chance; all calibrate as b does.
    """
    rng = np.random.default_rng(seed)
    learnt = {"a": by_heart(world, "a", rng, sequences)}
    candidates = np.stack([by_heart(world, "b", rng, sequences) for _ in range(CANDIDATES)])
    base = np.array([int(one.node_key[2:]) for one in world.base("b")])
    known = np.flatnonzero(np.isin(world.run_of, SHADOWED[:-LAG]))
    rank = int(ALPHA * (len(base) + 1))
    threshold = np.partition(candidates[:, :, base], rank - 1, axis=2)[:, :, rank - 1]
    hits = (candidates[:, :, known] >= threshold[:, :, None]).mean(axis=2)
    best = hits.argmax(axis=0)
    learnt["b"] = candidates[best, np.arange(sequences)]
    return learnt


def test_a_version_that_shadow_sets_chose_is_not_calibrated_by_their_nodes():
    consulted = frozenset(SHADOWED[:-LAG])
    world = World(**CHOSEN, consulted=consulted)
    covered, expected = world.coverage(chosen_by_shadow(world, 3, 300), AFTER)
    assert covered.mean() > expected - 3 * covered.std() / np.sqrt(len(covered))
    for seq in AFTER:
        assert not np.isin(world.run_of[world.calibrated[seq - 1]], list(consulted)).any()


def test_choosing_by_shadow_coverage_and_calibrating_on_the_same_nodes_breaks_the_promise():
    """The control: the runs that chose the version calibrate it."""
    world = World(**CHOSEN)
    covered, expected = world.coverage(chosen_by_shadow(world, 3, 300), AFTER)
    assert covered.mean() < expected - 4 * covered.std() / np.sqrt(len(covered))


def learnt_for_real(world, seed, sequences):
    """Scores of kernel classifiers of three overlapping classes, fitted on each version's nodes.

    The score of a node is the probability of its class; a narrow kernel knows its own nodes best.
    """
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [1.2, 0.0], [0.5, 1.0]])
    found = {name: np.empty((sequences, world.nodes)) for name in ("a", "b")}
    for number in range(sequences):
        y = rng.integers(0, 3, world.nodes)
        x = centres[y] + rng.normal(0.0, 0.6, (world.nodes, 2))
        for name, scores in found.items():
            own = world.learnt(name)
            squares = ((x[:, None, :] - x[None, own, :]) ** 2).sum(axis=2)
            near = np.exp(-squares / (2 * 0.12**2)) @ np.eye(3)[y[own]] + 0.05
            scores[number] = near[np.arange(world.nodes), y] / near.sum(axis=1)
    return found


@pytest.mark.statistics
@pytest.mark.parametrize("calibration_set", ["frozen", "growing", "window"])
def test_versions_that_learn_keep_the_promise_in_every_phase(calibration_set):
    world = World(STORY, trained=11, calibration_set=calibration_set)
    scores = learnt_for_real(world, 4, sequences=400)
    for runs in phases(STORY):
        require_coverage(world, scores, runs)


@pytest.mark.statistics
def test_versions_that_learn_break_it_where_what_they_learnt_calibrates_them():
    world = World(STORY, trained=11, calibration_set="growing", forget_roles=True)
    scores = learnt_for_real(world, 4, sequences=400)
    covered, expected = world.coverage(scores, phases(STORY)[1])
    assert covered.mean() < expected - 0.02
