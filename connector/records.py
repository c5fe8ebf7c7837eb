"""The records that cross the rooms' borders: run, prediction, label, coverage row, chain entry.

`connector.store.rows` makes them from the SQL rows of the same columns; scoring, auditing, pages,
reports and tests use them as they are. JSON columns are decoded, times are integer nanoseconds
since 1970, and a threshold of None is -infinity: nothing can be excluded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Role = Literal["train", "validation", "calibration", "holdout"]
ROLES: tuple[Role, ...] = get_args(Role)
RunState = Literal["decided", "applied"]
CorrectionReason = Literal["corrected", "withdrawn", "another node"]
NamedSlice = Literal["class", "group"]
Slice = Literal["run", "window", "total", "sample"] | NamedSlice
NAMED_SLICES: tuple[NamedSlice, ...] = ("class", "group")
"""Slices with a row per name. Their rows are at the last run of a model's terms only."""
UNSETTLED = "unsettled"
"""`raised_by` of a coverage row that no verdict may rest on yet: its known classes are a choice."""
NO_OPTIONS = "{}"
UNREADABLE = "unreadable"
"""Kind of a chain entry whose body is no JSON object any more."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a scoring run records of itself when it decides; the store adds number, state and times.

    `calibration_scores` are quantiles of the calibration scores on the graph of this run, `watch`
    the state of the exchangeability monitor after it, as JSON values; `options` are the other
    settings that shaped the sets, where they are not the defaults, as canonical JSON. `alphas` and
    `level` are None in runs of versions that had one alpha and no adaptive level, `lowest_level`
    where the graph shows the classes of the set alone; `n_thresholds` where there is one. `lists`
    are the facts of the run's lists as JSON values (`ListFacts`), None where it decided none.
    """

    started_ns: int
    watermark_from_ns: int | None
    watermark_to_ns: int | None
    rule: str
    score: str
    alpha: float
    threshold: float | None
    threshold_node: float | None
    threshold_edge: float | None
    threshold_naive: float | None
    n_calibration: int
    effective_calibration: float
    n_evaluated: int
    n_waiting: int
    n_already_known: int
    n_quarantined: int
    n_nodes: int
    n_relationships: int
    model: str
    config: str
    software: str
    notes: tuple[str, ...]
    calibration_scores: tuple[float, ...] | None
    watch: Mapping[str, Any] | None
    options: str = NO_OPTIONS
    alphas: tuple[float, ...] | None = None
    level: float | None = None
    lowest_level: float | None = None
    n_thresholds: int | None = None
    promise: str = "marginal"
    calibration_set: str = "frozen"
    adapt: bool = False
    levels: Mapping[str, Any] | None = None
    weights: str = "none"
    shift: Mapping[str, Any] | None = None
    mean_size_naive: float | None = None
    lists: Sequence[Mapping[str, Any]] | None = None

    @property
    def all_alphas(self) -> tuple[float, ...]:
        """Every alpha that the run promised sets for, the first one first."""
        return self.alphas or (self.alpha,)


@dataclass(frozen=True, slots=True)
class Threshold:
    """One threshold of a run: of an alpha, a stratum (`band`) and a class, "" where all share it.

    `level` is what p-values were compared with; `threshold` is None for -infinity.
    """

    alpha: float
    band: str
    class_: str
    level: float
    threshold: float | None
    n_calibration: int
    effective_calibration: float
    n_evaluated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(RunFacts):
    """A decided run as SQL holds it; `timings` are seconds per step, once it is applied."""

    project: str
    seq: int
    state: RunState
    token: int
    decided_ns: int
    applied_ns: int | None
    timings: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A new prediction: set, p-value and score of every class in the model's order, stratum."""

    node_key: str
    classes: tuple[str, ...]
    p_values: tuple[float, ...]
    scores: tuple[float, ...]
    degree: int
    band: str | None = None
    created_ns: int | None = None  # or when a run saw it first; None: of an older version
    evidence: str | None = None  # a digest of what was read

    @property
    def size(self) -> int:
        """Number of classes in the set."""
        return len(self.classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPrediction(Prediction):
    """A prediction as SQL holds it, with the class when it is known.

    `unseen` says that the model never saw such a class; `in_graph` is False where the node had left
    before its set reached the graph; `sampled` that the run drew it for the audit sample. `lists`
    are those that the node is on, with the smallest promised share at which it would be listed.
    """

    project: str
    seq: int
    in_graph: bool
    label: str | None
    labelled_ns: int | None
    covered: bool | None
    covered_naive: bool | None
    unseen: bool | None
    sampled: bool = False
    lists: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """Coverage of one slice at one run, with its verdict; the columns of the table `coverage`.

    `first_alpha` is False in rows about the sets at the alphas after a run's first. `own_promise`
    says that the class or group of the row has a promise of its own, which can be broken.
    Without `mean_size_naive` on record `covered_naive` is not shown: large sets cover easily.
    """

    seq: int
    slice: Slice
    name: str
    model: str
    alpha: float
    evaluated: int
    known: int
    covered: int
    covered_naive: int
    unseen: int
    coverage: float | None
    low: float
    high: float
    p_value: float
    anytime_low: float
    anytime_p: float
    mean_size: float
    mean_degree: float
    singletons: int
    singletons_known: int
    singleton_hits: int
    empty: int
    full: int
    bias: float | None
    bias_words: str
    exact: bool
    raised_by: str
    verdict: str
    words: str
    first_alpha: bool = True
    own_promise: bool = False
    mean_size_naive: float | None = None

    @property
    def above_promise(self) -> float:
        """By how much coverage is above what the row was promised; nothing known counts as none."""
        return (self.coverage or 0.0) - (1.0 - self.alpha)

    @property
    def worst_first(self) -> tuple[bool, float, str]:
        """The order that tables call worst first: furthest below the promise, unknown ones last."""
        return (not self.known, self.above_promise, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCoverage(CoverageRow):
    """A coverage row as SQL holds it."""

    project: str
    audited_ns: int


@dataclass(frozen=True, slots=True)
class AuditMark:
    """How far the audit has come: `labelled_at` read up to `labels_ns`, groups up to a run.

    `advice` is the advisor's opinion on the rule, as JSON values, where it has formed one.
    """

    audited_ns: int
    labels_ns: int | None
    grouped_seq: int
    advice: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """The value of one configured group property (a region, a product) of an evaluated node."""

    node_key: str
    property: str
    value: str


@dataclass(frozen=True, slots=True)
class Member:
    """A labelled node of a model version: trained on, stopped by, calibrated with, or held out.

    `created_ns` is its creation time at the training; models of older versions have none.
    """

    node_key: str
    role: Role
    class_index: int
    created_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Correction:
    """A calibration node whose class is not the one that counted before.

    `was` and `label` are the classes before and now; without a label it is out of the calibration.
    """

    node_key: str
    was: str | None
    label: str | None
    reason: CorrectionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCorrection(Correction):
    """A correction as SQL holds it, with the model version and when it was noticed."""

    version: str
    noticed_ns: int


@dataclass(frozen=True, slots=True)
class NodeState:
    """Class and creation time of a node as the graph has them now; None where it has none."""

    class_: str | None
    created_ns: int | None


@dataclass(frozen=True, slots=True)
class JoinedNode:
    """An evaluated node that counts from some run on: key, the run that evaluated it, its class."""

    node_key: str
    evaluated_in: int
    label: str


@dataclass(frozen=True, slots=True)
class KnownNode:
    """An evaluated node of known class: when the class was noticed, and the run it joined by.

    `role` is what the node was in the training of the version in question; None if it took no part,
    like every node that was evaluated and had no class yet.
    """

    node_key: str
    evaluated_in: int
    label: str
    noticed_ns: int
    joined_by: int | None
    role: Role | None = None
    sampled: bool = False


@dataclass(frozen=True, slots=True)
class RunCount:
    """Number, time and size of a run, and the version that decided it.

    `sampled` nodes are in the audit sample, `listed_apart` on some list and not in it.
    """

    seq: int
    decided_ns: int
    evaluated: int
    model: str = ""
    listed_apart: int = 0
    sampled: int = 0


@dataclass(frozen=True, slots=True)
class KnownClass:
    """A class as the graph has it now, and when it was set, if the graph has that time."""

    class_: str
    happened_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A class that became known, and whether the set and the naive set held it.

    `further` says the same of the sets at the run's alphas after the first, by alpha.
    """

    node_key: str
    label: str
    covered: bool
    covered_naive: bool
    unseen: bool
    happened_ns: int | None
    further: tuple[tuple[float, bool], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticedLabel(Label):
    """A label as SQL holds it, with the time at which an audit noticed it."""

    project: str
    noticed_ns: int


@dataclass(frozen=True, slots=True)
class RejectedNode:
    """A node that could not be used, with the reason for its quarantine.

    Of kind `relationship`: one whose time could not be used, by the key of its start; it is read.
    """

    element_id: str
    node_key: str | None
    reason: str
    kind: str = "node"


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """An entry of the audit chain; `body` is the canonical JSON text that is sealed.

    `facts` are the body's values; an entry whose body is no JSON object any more has the kind
    UNREADABLE and nothing else.
    """

    project: str
    n: int
    body: str
    prev: str
    hash: str
    facts: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """What was written down: decided, audited, classes, trained, alarm, …"""
        return str(self.facts["kind"])

    @property
    def at_ns(self) -> int | None:
        """When it was written; None in entries of the first version."""
        return self.facts.get("at_ns")

    @property
    def actor(self) -> str:
        """Who wrote it: verb, user, host and process; empty in entries of the first version."""
        actor = self.facts.get("actor") or {}
        where = actor and f"{actor['host']}, process {actor['process']}"
        user = f" by {actor['user']}" if actor.get("user") else ""  # older entries name none
        return f"{actor['verb']}{user} on {where}" if actor else ""
