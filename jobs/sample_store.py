"""A made-up audit store: runs, sets and late classes without a graph, for tests and benchmarks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.connector import coverage, groups, labels, runs
from ringfence.connector.chain import chain_key
from ringfence.connector.labels import Found
from ringfence.connector.lease import acquire, release
from ringfence.connector.migrate_sql import migrate_sql
from ringfence.connector.models import Member, record_model
from ringfence.connector.rows import Rejected
from ringfence.connector.runs import Decision, Prediction, Writer
from ringfence.connector.store import Store, dumps
from ringfence.jobs.alarms import raise_alarms
from ringfence.jobs.auditing import count_coverage
from ringfence.jobs.settings import Settings
from ringfence.models.watch import Watch

DAY_NS = 86_400 * 10**9
CLASSES = ("retail", "business", "mule", "exchange")
VERSION = "sample-1"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to make up. `covered` is the chance that a set holds the class."""

    runs: int = 12
    per_run: int = 200
    known: float = 0.7
    covered: float = 0.91
    calibration: int = 300
    classes: tuple[str, ...] = CLASSES
    regions: tuple[str, ...] = ("north", "south", "east")
    prefix: str = "account "
    seed: int = 7


def fill_store(store: Store, settings: Settings, plan: Plan) -> None:
    """Write models, runs, classes, groups, coverage and alarms as if they had happened."""
    migrate_sql(store)
    held = acquire(store, settings.project, "sample", 3600)
    writer = Writer(store, held, chain_key(None, settings.engine.folder))
    try:
        _model(writer, plan)
        rng = np.random.default_rng(plan.seed)
        watch = Watch.start()
        for number in range(1, plan.runs + 1):
            sets, truth = _sets(plan, number, rng)
            watch = watch.after(rng.random(int(plan.per_run * plan.known)))
            facts = _facts(plan, number, rng, watch)
            seq = runs.decide(writer, Decision(facts, sets, _rejected(number, plan)))
            runs.close_run(writer, seq, (), {"read": 0.4, "forward": 1.2, "decide": 0.1 * number})
            _note(writer, plan, sets, truth, facts, rng)
            if settings.audit.groups:
                _group(writer, plan, sets, settings.audit.groups, rng)
        coverage.record_coverage(writer, count_coverage(store, settings))
        advice = "The node-exchangeable rule (NodeEx) is the better supported one.\n- node: degrees"
        body = {"nodes": 9_000, "rule": "node", "node_p": 0.4, "edge_p": 0.001, "words": advice}
        coverage.set_mark(writer, grouped_seq=plan.runs, advice=dumps(body))
        raise_alarms(writer, settings)
    finally:
        release(store, held)


def _model(writer: Writer, plan: Plan) -> None:
    counts = {"train": 500, "validation": 200, "calibration": plan.calibration}
    manifest = {
        "network": "GCN", "classes": list(plan.classes), "counts": counts, "seed": 0,
        "weights_sha256": "ab" * 32,
    }  # fmt: skip
    members = [Member(f"i:{-i - 1}", "calibration", 0) for i in range(3)]
    record_model(writer, VERSION, json.dumps(manifest), "cd" * 32, members)


def _sets(plan: Plan, number: int, rng: np.random.Generator) -> tuple[list[Prediction], list[str]]:
    """Sets whose true class has a p-value above alpha with the planned chance."""
    many, count = plan.per_run, len(plan.classes)
    truth = rng.integers(0, count, many)
    p = rng.beta(0.4, 4.0, (many, count))
    hit = rng.random(many) < plan.covered
    p[np.arange(many), truth] = np.where(
        hit, rng.uniform(0.101, 1, many), rng.uniform(0, 0.1, many)
    )
    degree = rng.poisson(6, many) + 1
    made = []
    for i in range(many):
        inside = tuple(plan.classes[j] for j in range(count) if p[i, j] > 0.1)
        values = tuple(p[i].round(6).tolist())
        scores = tuple((p[i] - 1).round(6).tolist())
        key = f"s:{plan.prefix}{number}-{i}"
        made.append(Prediction(key, inside, values, scores, int(degree[i])))
    return made, [plan.classes[j] for j in truth]


def _facts(plan: Plan, number: int, rng: np.random.Generator, watch: Watch) -> dict[str, Any]:
    start = 1_760_000_000 * 10**9 + number * DAY_NS
    quantiles = np.linspace(-1 + 0.004 * number, -0.02, 101) + rng.normal(0, 0.002)
    threshold = -0.92 + 0.05 * (1 - np.exp(-number / 4)) + rng.normal(0, 0.003)
    return {
        "started_ns": start,
        "watermark_from_ns": start - DAY_NS,
        "watermark_to_ns": start,
        "rule": "NodeEx",
        "score": "APS",
        "alpha": 0.1,
        "threshold": threshold,
        "threshold_node": threshold,
        "threshold_edge": threshold + 0.01,
        "threshold_naive": -0.86,
        "n_calibration": plan.calibration,
        "effective_calibration": float(plan.calibration),
        "n_evaluated": plan.per_run,
        "n_waiting": 0,
        "n_already_known": 3,
        "n_quarantined": 2,
        "n_nodes": 5_000 + plan.per_run * number,
        "n_relationships": 40_000,
        "model": VERSION,
        "config": "0123456789abcdef",
        "software": "sample",
        "notes": "[]",
        "timings": "{}",
        "calibration_scores": dumps(np.sort(quantiles).round(6).tolist()),
        "watch": dumps({"state": watch.as_dict(), "mark_ns": start, "new": 10, "mean_p": 0.5}),
    }


def _rejected(number: int, plan: Plan) -> list[Rejected]:
    return [Rejected(f"4:x:{number}{i}", None, "the key is missing") for i in range(2)]


def _note(
    writer: Writer,
    plan: Plan,
    sets: Sequence[Prediction],
    truth: Sequence[str],
    facts: dict[str, Any],
    rng: np.random.Generator,
) -> None:
    from types import SimpleNamespace

    judged = []
    for one, class_ in zip(sets, truth, strict=True):
        if rng.random() < plan.known:
            row: Any = SimpleNamespace(
                node_key=one.node_key,
                classes=dumps(one.classes),
                scores=dumps(one.scores),
                threshold_naive=facts["threshold_naive"],
            )
            judged.append(labels.judge(row, Found(class_), plan.classes))
    labels.record_labels(writer, judged)


def _group(
    writer: Writer,
    plan: Plan,
    sets: Sequence[Prediction],
    names: Sequence[str],
    rng: np.random.Generator,
) -> None:
    groups.record_groups(
        writer,
        [
            {"node_key": one.node_key, "property": name, "value": str(rng.choice(plan.regions))}
            for one in sets
            for name in names
        ],
    )
