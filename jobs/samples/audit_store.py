"""A made-up audit store: runs, sets and late classes without a graph, for tests and benchmarks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ringfence.connector.json_types import JsonObject
from ringfence.connector.list_terms import ListFacts
from ringfence.connector.records import (
    AuditMark,
    KnownClass,
    Member,
    NodeGroup,
    Prediction,
    RejectedNode,
    Role,
    RunFacts,
    Threshold,
)
from ringfence.connector.store import coverage, labels, runs
from ringfence.connector.store.alarms import CoverageDecline
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.groups import record_groups
from ringfence.connector.store.labels import OpenPrediction
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.migrate import migrate_sql
from ringfence.connector.store.models import record_model
from ringfence.connector.store.runs import Decision
from ringfence.connector.store.worklist.sampled_nodes import NO_SAMPLE, AuditSample
from ringfence.connector.store.writer import Writer
from ringfence.jobs.auditing.alarms.state import raise_alarms
from ringfence.jobs.auditing.audit import count_coverage
from ringfence.jobs.config.conformal import terms_of
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.scoring.calibration.settled_notes import SETTLED_KEY
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor
from ringfence.models.hashing import SAMPLE, draw_keys
from ringfence.models.promise.marginal import MARGINAL
from ringfence.models.promise.registry import promise_named

DAY_NS = 86_400 * 10**9
CLASSES = ("retail", "business", "mule", "exchange")
FIRST_CREATED_NS = 1_700_000_000_000_000_000
VERSION = "sample-1"
LATE_CLASSES = (
    "classes usually come 1 run late; calibration is frozen and waits for none, verdicts are about "
    "runs whose classes have come"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to make up. `covered` is the chance that a set holds the class.

    `alphas` are those of the first runs, one each; the last one goes on. Classes become known for
    the first `known_runs` runs. `promise` is for whom runs promise; `covered_by_class` has the
    chance of classes that are covered more or less often than the others. Runs are decided so many
    `days_apart`, the last one now; all of them now where it is 0. Mean degrees grow by
    `degree_growth` from run to run; classes become known for nodes of `known_from_degree` on alone.
    """

    runs: int = 12
    per_run: int = 200
    known: float = 0.7
    covered: float = 0.91
    calibration: int = 300
    classes: tuple[str, ...] = CLASSES
    regions: tuple[str, ...] = ("north", "south", "east")
    prefix: str = "account "
    seed: int = 7
    alphas: tuple[float, ...] = (0.1,)
    known_runs: int = 1_000_000
    promise: str = "marginal"
    covered_by_class: Mapping[str, float] = field(default_factory=dict)
    days_apart: float = 0.0
    degree_growth: float = 0.0
    known_from_degree: int = 0


@dataclass(frozen=True, slots=True)
class _DatedWriter(Writer):
    """A writer whose clock is so many nanoseconds late."""

    late_ns: int = 0

    def begin(self, connection: Any) -> int:
        return Writer.begin(self, connection) - self.late_ns


def fill_store(store: Store, settings: Settings, plan: Plan) -> None:
    """Write models, runs, classes, groups, coverage and alarms as if they had happened."""
    migrate_sql(store)
    held = acquire(store, settings.project, "sample", 3600)
    writer = _DatedWriter(store, held, chain_key(None, settings.engine.folder))
    try:
        _record_model(writer, plan)
        rng = np.random.default_rng(plan.seed)
        monitor = ExchangeabilityMonitor.start()
        per_class = promise_named(plan.promise).per_class
        mark: AuditMark | None = None
        for number in range(1, plan.runs + 1):
            late_ns = int((plan.runs - number) * plan.days_apart * DAY_NS)
            writer = replace(writer, late_ns=late_ns)
            sets, truth = _sets(plan, number, rng)
            monitor = monitor.after(rng.random(int(plan.per_run * plan.known)))
            facts = _with_naive_size(_facts(plan, number, rng, monitor), sets)
            thresholds = _thresholds(plan, facts) if per_class else []
            facts, listed = _lists(plan, facts, sets, settings)
            decision = Decision(
                facts, sets, _rejected(number), thresholds=thresholds,
                sample=_sample(sets, settings.audit.sample_nodes), listed=listed,
            )  # fmt: skip
            seq = runs.decide(writer, decision)
            runs.close_run(writer, seq, (), {"read": 0.4, "forward": 1.2, "decide": 0.1 * number})
            if number <= plan.known_runs:
                _record_labels(writer, plan, sets, truth, facts, rng)
            if settings.audit.groups:
                _record_groups(writer, plan, sets, settings.audit.groups, rng)
                mark = coverage.set_mark(writer, mark, grouped_seq=seq)
        declines: list[CoverageDecline] = []
        coverage.record_coverage(writer, count_coverage(store, settings, declines=declines))
        advice = "The node-exchangeable rule (NodeEx) is the better supported one.\n- node: degrees"
        body = {"nodes": 9_000, "rule": "node", "node_p": 0.4, "edge_p": 0.001, "words": advice}
        coverage.set_mark(writer, mark, grouped_seq=plan.runs, advice=body)
        raise_alarms(writer, settings, declines)
    finally:
        release(store, held)


def _sample(sets: Sequence[Prediction], asked: int) -> AuditSample:
    """The audit sample of a run, drawn as by a version with the seed 0."""
    if asked == 0:
        return NO_SAMPLE
    keys = [decided.node_key for decided in sets]
    return AuditSample(asked, tuple(draw_keys(keys, 0, SAMPLE, asked)))


def _lists(
    plan: Plan, facts: RunFacts, sets: Sequence[Prediction], settings: Settings
) -> tuple[RunFacts, dict[str, dict[str, float]]]:
    """The configured lists of a run: nodes whose class is likeliest, or least likely."""
    listed: dict[str, dict[str, float]] = {}
    made = []
    for terms in terms_of(settings.lists):
        place = plan.classes.index(terms.class_)
        for decided in sets:
            p = decided.p_values[place]
            share = p if terms.is_clear else 1 - p / max(decided.p_values)
            if share <= terms.may_be_wrong:
                listed.setdefault(decided.node_key, {})[terms.name] = share
        count = sum(terms.name in names for names in listed.values())
        words = f"list {terms.name}: {count} nodes"
        made.append(ListFacts(terms, plan.calibration, 9, 0.5, 8, count, "measured", words))
    return replace(facts, lists=[item.as_json() for item in made] or None), listed


def _record_model(writer: Writer, plan: Plan) -> None:
    counts: dict[Role, int] = {"train": 50, "validation": 20, "calibration": plan.calibration}
    manifest = {
        "network": "GCN", "classes": list(plan.classes), "counts": counts, "seed": 0,
        "weights_sha256": "ab" * 32,
    }  # fmt: skip
    roles = [role for role, count in counts.items() for _ in range(count)]
    members = [Member(f"i:{-i - 1}", role, i % len(plan.classes)) for i, role in enumerate(roles)]
    text = json.dumps(manifest)
    digest = hashlib.sha256(text.encode()).hexdigest()
    record_model(writer, VERSION, text, digest, members)


def _sets(plan: Plan, number: int, rng: np.random.Generator) -> tuple[list[Prediction], list[str]]:
    """Sets whose true class has a p-value above alpha with the planned chance."""
    many, count = plan.per_run, len(plan.classes)
    truth = rng.integers(0, count, many)
    p = rng.beta(0.4, 4.0, (many, count))
    chance = np.array([plan.covered_by_class.get(name, plan.covered) for name in plan.classes])
    hit = rng.random(many) < chance[truth]
    p[np.arange(many), truth] = np.where(
        hit, rng.uniform(0.101, 1, many), rng.uniform(0, 0.1, many)
    )
    degree = rng.poisson(6 + plan.degree_growth * (number - 1), many) + 1
    made = []
    for i in range(many):
        inside = tuple(plan.classes[j] for j in range(count) if p[i, j] > 0.1)
        values = tuple(p[i].round(6).tolist())
        scores = tuple((p[i] - 1).round(6).tolist())
        key = f"s:{plan.prefix}{number}-{i}"
        band = "" if promise_named(plan.promise).per_class else None
        evidence = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        identity = FIRST_CREATED_NS + number * many + i, evidence
        made.append(Prediction(key, inside, values, scores, int(degree[i]), band, *identity))
    return made, [plan.classes[j] for j in truth]


def _facts(
    plan: Plan, number: int, rng: np.random.Generator, monitor: ExchangeabilityMonitor
) -> RunFacts:
    start = 1_760_000_000 * 10**9 + number * DAY_NS
    quantiles = np.linspace(-1 + 0.004 * number, -0.02, 101) + rng.normal(0, 0.002)
    threshold = -0.92 + 0.05 * (1 - np.exp(-number / 4)) + rng.normal(0, 0.003)
    return RunFacts(
        started_ns=start,
        watermark_from_ns=start - DAY_NS,
        watermark_to_ns=start,
        rule="NodeEx",
        score="APS",
        alpha=plan.alphas[min(number, len(plan.alphas)) - 1],
        threshold=threshold,
        threshold_node=threshold,
        threshold_edge=threshold + 0.01,
        threshold_naive=-0.86,
        n_calibration=plan.calibration,
        effective_calibration=float(plan.calibration),
        n_evaluated=plan.per_run,
        n_waiting=0,
        n_already_known=3,
        n_quarantined=2,
        n_nodes=5_000 + plan.per_run * number,
        n_relationships=40_000,
        model=VERSION,
        config=f"{plan.alphas[min(number, len(plan.alphas)) - 1]:.14f}",
        software="sample",
        notes=(LATE_CLASSES,),
        levels={SETTLED_KEY: {"delay": 1, "limit": 2, "words": [LATE_CLASSES]}},
        calibration_scores=tuple(np.sort(quantiles).round(6).tolist()),
        watch={"state": monitor.as_dict(), "mark_ns": start, "new": 10, "mean_p": 0.5},
        promise=plan.promise,
        shift=_comparison(number),
        options=dumps({} if plan.promise == MARGINAL.name else {"promise": plan.promise}),
    )


def _with_naive_size(facts: RunFacts, sets: Sequence[Prediction]) -> RunFacts:
    threshold = facts.threshold_naive or 0.0
    sizes = [sum(score >= threshold for score in set_.scores) for set_ in sets]
    return replace(facts, mean_size_naive=float(np.mean(sizes)))


def _comparison(number: int) -> JsonObject:
    """What a run found when it compared its nodes with the calibration nodes: nothing."""
    medians = {"degree": (6.0, 6.0 + number % 2), "top probability": (0.81, 0.8)}
    compared: list[JsonObject] = [
        {"name": name, "calibration": ours, "due": due, "distance": 0.04, "p": 0.6}
        for name, (ours, due) in medians.items()
    ]
    return {"level": 0.01, "sentence": "", "compared": compared}


def _thresholds(plan: Plan, facts: RunFacts) -> list[Threshold]:
    """One per class, each with its share of the calibration nodes."""
    n = plan.calibration // len(plan.classes)
    return [
        Threshold(
            facts.alpha, "", name, facts.alpha, -0.9 + 0.01 * place, n, float(n), plan.per_run
        )
        for place, name in enumerate(plan.classes)
    ]


def _rejected(number: int) -> list[RejectedNode]:
    return [RejectedNode(f"4:x:{number}{i}", None, "the key is missing") for i in range(2)]


def _record_labels(
    writer: Writer,
    plan: Plan,
    sets: Sequence[Prediction],
    truth: Sequence[str],
    facts: RunFacts,
    rng: np.random.Generator,
) -> None:
    judged = []
    for prediction, class_ in zip(sets, truth, strict=True):
        if rng.random() < plan.known and prediction.degree >= plan.known_from_degree:
            evaluated = OpenPrediction(
                prediction.node_key,
                dumps(prediction.classes),
                dumps(prediction.scores),
                None,
                facts.threshold_naive,
                facts.model,
            )
            judged.append(labels.check_label(evaluated, KnownClass(class_), plan.classes))
    labels.record_labels(writer, judged)


def _record_groups(
    writer: Writer,
    plan: Plan,
    sets: Sequence[Prediction],
    names: Sequence[str],
    rng: np.random.Generator,
) -> None:
    record_groups(
        writer,
        [set_.node_key for set_ in sets],
        [
            NodeGroup(set_.node_key, name, str(rng.choice(plan.regions)))
            for set_ in sets
            for name in names
        ],
    )
