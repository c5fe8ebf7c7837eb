"""Lives in which people find out the classes of listed nodes: coverage, calibration and lists.

Two classes whose scores overlap; each run decides sets at 90 % and a list with a promised share,
both by the calibration nodes that the product's functions choose. What becomes known depends on the
life. Coverage and false share are those of all nodes, which a simulation knows.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from ringfence.connector.records import KnownNode, Member, RunCount
from ringfence.jobs.scoring.calibration import settled_runs
from ringfence.jobs.scoring.calibration.calibration_set import choose_calibration
from ringfence.jobs.scoring.calibration.eligibility import Eligibility
from ringfence.jobs.scoring.calibration.settled_runs import UsualLabels, find_settled
from ringfence.models.calibration.sets.registry import calibration_set_named
from ringfence.models.conformal.strata import one_stratum
from ringfence.models.selection.per_run import PER_RUN
from ringfence.models.selection.references import References, ScoredNodes, rank_among
from tests.known_nodes import ListedNodes

pytestmark = pytest.mark.statistics

CLASSES, RARE, DISTANCE = ("retail", "mule"), 0.06, 2.5
TRAINED, PER_RUN_NODES, RUNS, WINDOW, LIVES = 600, 100, 60, 600, 8
ALPHA, SHARE, SAMPLE = 0.1, 0.2, 10


@dataclass
class Life:
    """One life; `known` says after how many runs a node's class comes, by listed and sampled."""

    seed: int
    known: object
    sample: int = 0
    kind: str = "window"
    covered: list = field(default_factory=list)
    false: list = field(default_factory=list)
    listed: list = field(default_factory=list)

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)
        n = TRAINED + PER_RUN_NODES * RUNS
        self.mule = (self.rng.random(n) < RARE).astype(np.int64)
        self.score = self.rng.normal(size=n) + DISTANCE * self.mule
        self.ties = self.rng.random(n)
        self.on_list, self.sampled = np.zeros(n, bool), np.zeros(n, bool)
        self.comes, self.joined = np.full(n, 10**6), {}
        self.play()

    def run_of(self, row):
        return 1 + (row - TRAINED) // PER_RUN_NODES

    def runs(self, before):
        of = [slice(*self.rows(seq)) for seq in range(1, before)]
        apart = self.on_list & ~self.sampled
        sizes = [(int(apart[rows].sum()), int(self.sampled[rows].sum())) for rows in of]
        return [
            RunCount(seq, 100 * seq, PER_RUN_NODES, "a", *size)
            for seq, size in enumerate(sizes, start=1)
        ]

    def rows(self, seq):
        return TRAINED + (seq - 1) * PER_RUN_NODES, TRAINED + seq * PER_RUN_NODES

    def record(self, seq):
        rows = np.flatnonzero(self.comes[TRAINED : self.rows(seq)[0]] < seq) + TRAINED
        nodes = [
            KnownNode(f"i:{row}", self.run_of(row), CLASSES[self.mule[row]],
                      100 * int(self.comes[row]) + 50, self.joined.get(f"i:{row}"), None,
                      bool(self.sampled[row]))
            for row in rows.tolist()
        ]  # fmt: skip
        return ListedNodes(nodes, {f"i:{row}" for row in np.flatnonzero(self.on_list)})

    def play(self):
        trained = {name: int((self.mule[:TRAINED] == c).sum()) for c, name in enumerate(CLASSES)}
        self.usual = UsualLabels(trained)
        base = [Member(f"i:{row}", "calibration", int(self.mule[row])) for row in range(TRAINED)]
        for seq in range(1, RUNS + 1):
            chosen = choose_calibration(
                base, self.record(seq), self.runs(seq), CLASSES,
                kind=calibration_set_named(self.kind), window_nodes=WINDOW, promised=(),
                eligible=Eligibility("a", 1), usual=self.usual,
            )  # fmt: skip
            self.joined.update(dict.fromkeys((n.node_key for n in chosen.joining), seq))
            refer = np.array([int(member.node_key[2:]) for member in chosen.members])
            self.decide(seq, refer)

    def decide(self, seq, refer):
        new = np.arange(*self.rows(seq))
        own = np.where(self.mule == 1, self.score, DISTANCE - self.score)  # of the true class
        n = len(refer)
        p = (1 + (own[refer][None] <= own[new][:, None]).sum(axis=1)) / (n + 1)
        self.covered.append((p > ALPHA).mean())
        references = References(
            ScoredNodes(self.score[refer], self.ties[refer]), self.mule[refer] == 0, np.ones(n)
        )
        nodes = ScoredNodes(self.score[new], self.ties[new])
        found = rank_among(references, nodes, one_stratum(n, len(new)))
        listed = PER_RUN.shares(found, len(new), SHARE) <= SHARE
        self.on_list[new] = listed
        self.sampled[new[self.rng.permutation(len(new))[: self.sample]]] = True
        self.comes[new] = seq + self.known(self, new)
        self.listed.append(int(listed.sum()))
        self.false.append(int((listed & (self.mule[new] == 0)).sum()))

    def settled(self):
        return find_settled(self.record(RUNS + 1).counts(), self.runs(RUNS + 1), self.usual)


NEVER = 10**6


def only_listed(life, rows):
    """The red control of a life: nobody asks about anyone but the listed."""
    return np.where(life.on_list[rows], 1, NEVER)


def listed_first(life, rows):
    return np.where(life.on_list[rows], 1, 5)


def all_alike(life, rows):
    return np.full(len(rows), 3)


def mules_first(life, rows):
    return np.where(life.mule[rows] == 1, 1, 5)


def listed_and_sample(life, rows):
    return np.where(life.on_list[rows] | life.sampled[rows], 1, NEVER)


def lives(known, sample=0, kind="window"):
    return [Life(seed, known, sample, kind) for seed in range(LIVES)]


def later(these):
    """Coverage and false share (empty lists as 0) of the second half, and standard errors."""
    covered = np.array([np.mean(life.covered[RUNS // 2 :]) for life in these])
    share = np.array([
        np.mean([f / max(n, 1) for f, n in zip(life.false, life.listed, strict=True)][RUNS // 2 :])
        for life in these
    ])  # fmt: skip
    error = np.sqrt(len(these))
    return covered.mean(), covered.std() / error, share.mean(), share.std() / error


@pytest.mark.parametrize("known", [only_listed, listed_first, all_alike, mules_first])
def test_coverage_and_lists_keep_their_promise_whatever_becomes_known_of_the_listed(known):
    covered, error, share, share_error = later(lives(known))
    assert abs(covered - (1 - ALPHA)) < 4 * error + 0.01, (covered, error)
    assert share < SHARE + 4 * share_error + 0.01, (share, share_error)


def test_lists_by_a_growing_calibration_set_keep_their_promise():
    covered, error, share, share_error = later(lives(all_alike, kind="growing"))
    assert abs(covered - (1 - ALPHA)) < 4 * error + 0.01, (covered, error)
    assert share < SHARE + 4 * share_error + 0.01, (share, share_error)


def test_the_red_control_without_the_rule_calibration_fills_with_suspects(monkeypatch):
    """Their false alarms are the highest scores of nodes that are no mule: lists lose half."""
    ruled = lives(only_listed)
    monkeypatch.setattr(settled_runs, "held_runs", lambda asked: np.zeros(len(asked.known), bool))
    free = lives(only_listed)
    assert sum(len(life.joined) for life in free) > 50 * LIVES
    listed = [sum(sum(life.listed[RUNS // 2 :]) for life in these) for these in (ruled, free)]
    assert listed[1] < 0.7 * listed[0], listed
    differences = [
        np.mean(b.covered[RUNS // 2 :]) - np.mean(a.covered[RUNS // 2 :])
        for a, b in zip(ruled, free, strict=True)
    ]
    assert np.mean(differences) > 3 * np.std(differences) / np.sqrt(LIVES), differences


def test_listed_nodes_alone_join_nothing_and_their_runs_are_no_basis_of_a_verdict():
    for life in lives(only_listed)[:3]:
        settled = life.settled()
        assert life.joined == {}
        assert settled.held >= {run.seq for run in life.runs(RUNS) if run.listed_apart > 2}
        assert settled.find_early() >= settled.held


def test_runs_whose_classes_come_alike_are_not_held():
    for life in lives(all_alike)[:3]:
        assert not life.settled().held
        assert len(life.joined) > 0.9 * PER_RUN_NODES * (RUNS - 5)


def test_nodes_of_the_sample_join_although_their_run_is_held():
    for life in lives(listed_and_sample, SAMPLE)[:3]:
        joined = np.array([int(key[2:]) for key in life.joined])
        held = np.array(sorted(life.settled().held))
        of_held = joined[np.isin(life.run_of(joined), held)]
        assert len(of_held) > SAMPLE * (len(held) - 5)
        assert life.sampled[of_held].all()
