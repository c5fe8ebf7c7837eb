"""A project that decides runs of made-up nodes by the functions that scoring uses, without a graph.

p-values are drawn, classes become known one run later, nodes join the calibration, the level
adapts, the monitor is fed, every tenth run is audited. Nothing is compared before it is used: what
somebody edits for one run is sealed, as an older version or a changed program would have.
"""

import json
from dataclasses import dataclass, field, replace
from hashlib import sha256

import numpy as np

from ringfence.connector.prediction_table import FurtherSizes, PredictionTable
from ringfence.connector.records import KnownClass, Member, RunFacts
from ringfence.connector.store import coverage, labels, runs
from ringfence.connector.store.calibration.joined import p_values_of_runs, run_counts
from ringfence.connector.store.calibration.known import KnownNodes
from ringfence.connector.store.calibration.run_basis import MonitorInput, RunBasis
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.labels import OpenPrediction
from ringfence.connector.store.lease import acquire
from ringfence.connector.store.migrate import migrate_sql
from ringfence.connector.store.models import record_model
from ringfence.connector.store.runs import Decision
from ringfence.connector.store.writer import Writer
from ringfence.jobs.auditing.audit import count_coverage
from ringfence.jobs.project.promise import FIRST_TERMS, PROMISE_KEY
from ringfence.jobs.scoring.calibration.eligibility import Eligibility
from ringfence.jobs.scoring.calibration.joining_nodes import find_joining
from ringfence.jobs.scoring.calibration.settled_runs import usual_labels
from ringfence.jobs.scoring.levels import LevelPlan, next_levels
from ringfence.jobs.scoring.monitor import describe_state
from ringfence.jobs.scoring.run_record import used_levels
from ringfence.models.calibration.adaptive_level import TODAY
from ringfence.models.conformal.sets import sets_at_levels
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor

CLASSES = ("retail", "business", "mule", "exchange")
VERSION, ALPHA, AUDIT_EVERY = "made-up-1", 0.1, 10
TERMS = replace(FIRST_TERMS, calibration_set="window", adapt=True, adapt_rule=TODAY)
PLAN = LevelPlan((ALPHA,), {}, False, True, TERMS.adapt_step, TERMS.adapt_rule)
MANIFEST = {
    "classes": CLASSES, "counts": {"calibration": 100}, "seed": 0,
    "data": {"classes": dict.fromkeys(CLASSES, 25)}, PROMISE_KEY: TERMS.as_manifest(),
}  # fmt: skip


@dataclass(slots=True)
class Life:
    """A project that decides runs of made-up nodes."""

    store: Store
    settings: object
    writer: Writer
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    mark_ns: int = 0
    news: tuple[str, ...] = ()
    alphas: tuple[float, ...] = (ALPHA,)

    def live(self, number, nodes):
        """Decide a run; then its classes become known, and every tenth one is audited."""
        came = self.joining()
        levels = self.levels(came)
        p = self.rng.random((nodes, len(CLASSES))).round(6) + 1e-6
        sets = sets_at_levels(p, levels.used)
        keys = [f"s:{number}-{i}" for i in range(nodes)]
        degrees = self.rng.integers(1, 40, nodes)
        table = PredictionTable(keys, CLASSES, sets[0], p, p - 1.0, degrees)
        fed = MonitorInput(self.news, tuple(self.rng.random(len(self.news)).tolist()))
        facts = self.facts(nodes, levels, fed)
        basis = RunBasis(fed)
        further = FurtherSizes(keys, self.alphas[1:], sets[1:].sum(axis=2))
        decision = Decision(
            facts, table, [], further_sets=further, joined=came.joined_nodes, basis=basis
        )
        seq = runs.decide(self.writer, decision)
        runs.close_run(self.writer, seq, (), {})
        truth = self.rng.integers(0, len(CLASSES), nodes).tolist()
        self.reveal(table, truth, facts)
        if number % AUDIT_EVERY == 0:
            self.audit()

    def audit(self):
        rows = count_coverage(self.store, self.settings)
        coverage.record_coverage(self.writer, rows)

    def joining(self):
        project = self.settings.project
        known = KnownNodes(self.store, project, VERSION)
        eligible, usual = Eligibility(VERSION), usual_labels(MANIFEST, TERMS)
        every_run = run_counts(self.store, project)
        return find_joining(known, every_run, CLASSES, TERMS.calibration_kind, eligible, usual)

    def levels(self, came):
        project = self.settings.project
        last = runs.newest_run_of_model(self.store, project, VERSION)
        used = {seq: runs.one_run(self.store, project, seq).levels or {} for seq in came.answered}
        known = p_values_of_runs(self.store, project, came.answered)
        before = None if last is None else last.levels
        plan = replace(PLAN, alphas=self.alphas)
        return next_levels(plan, CLASSES, before, used, known, came.waiting)

    def facts(self, nodes, levels, fed):
        last = runs.newest_monitored_run(self.store, self.settings.project, VERSION)
        monitor = ExchangeabilityMonitor.start()
        if last is not None:
            monitor = ExchangeabilityMonitor.from_dict(last.watch["state"])
        watch = describe_state(monitor, self.mark_ns, fed.p_values)
        lowest = float(levels.used.min())
        return RunFacts(
            started_ns=0, watermark_from_ns=0, watermark_to_ns=1, rule=TERMS.rule,
            score=TERMS.score, alpha=ALPHA, threshold=-0.9, threshold_node=-0.9,
            threshold_edge=-0.9, threshold_naive=-0.9, n_calibration=100,
            effective_calibration=100.0, n_evaluated=nodes, n_waiting=0, n_already_known=0,
            n_quarantined=0, n_nodes=nodes, n_relationships=nodes, model=VERSION, config="c",
            software="benchmark", notes=(), calibration_scores=None, watch=watch,
            options=dumps({"adapt_rule": TODAY}), alphas=self.alphas, level=lowest,
            lowest_level=lowest, n_thresholds=1, calibration_set=TERMS.calibration_set,
            adapt=True,
            levels={"used": used_levels(levels.used, CLASSES), "nonempty": False, **levels.record},
        )  # fmt: skip

    def reveal(self, table, truth, facts):
        judged = []
        for i, class_ in enumerate(truth):
            inside = [name for name, held in zip(CLASSES, table.sets[i], strict=True) if held]
            texts = dumps(inside), dumps(table.scores[i].tolist())
            opened = OpenPrediction(
                table.keys[i], *texts, None, -0.9, VERSION, dumps(table.p_values[i].tolist()),
                dumps(facts.alphas), dumps(facts.levels),
            )  # fmt: skip
            judged.append(labels.check_label(opened, KnownClass(CLASSES[class_]), CLASSES))
        labels.record_labels(self.writer, judged)
        self.news = tuple(table.keys)
        with self.store.reading() as connection:
            newest = labels.newest_noticed_ns(connection, self.settings.project)
        self.mark_ns = self.mark_ns if newest is None else newest


def begin(store, settings, alphas=(ALPHA,)):
    migrate_sql(store)
    held = acquire(store, settings.project, "benchmark", 86_400)
    writer = Writer(store, held, chain_key(None, settings.engine.folder))
    text = json.dumps(MANIFEST)
    members = [Member(f"i:{i}", "calibration", i % len(CLASSES)) for i in range(100)]
    record_model(writer, VERSION, text, sha256(text.encode()).hexdigest(), members)
    return Life(store, settings, writer, alphas=alphas)
