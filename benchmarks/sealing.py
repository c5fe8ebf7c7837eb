"""What sealing the record costs: a run with 1,000 sets with the chain and without it.

    python -m benchmarks.sealing [--quick]

Whole runs and audits, from a real Neo4j and into it, with the comparison of what they rest on
(`basis_check`) and without it, in turns on one project (`--whole` measures these alone). Then the
SQL side of a run and its audit (decide, apply, classes, coverage, alarms) on SQLite, once as it is,
once with no entry, no digest and no seal, once without that comparison, and once without what its
entry can be derived from again (the p-values that the monitor is fed with, `run_basis`), in turns
on four stores; then that comparison after many runs; then what `ringfence score` checks before it
begins, by the number of members, and what the Audit trail page checks each time, by the number of
runs. CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.measuring import PUBLISHED_KEY, cpu_seconds, keep, show
from ringfence.connector.neo4j import embedded
from ringfence.connector.records import KnownClass, Member, Prediction
from ringfence.connector.store import alarms, chain, coverage, labels, runs
from ringfence.connector.store.audit_chain.basis.mark import mark_on_record
from ringfence.connector.store.audit_chain.basis_check import Basis
from ringfence.connector.store.audit_chain.preflight_check import require_sound_record
from ringfence.connector.store.calibration.run_basis import MonitorInput, RunBasis
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.engine import dumps, open_store
from ringfence.connector.store.labels import OpenPrediction
from ringfence.connector.store.lease import acquire
from ringfence.connector.store.models import record_model
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.runs import Decision
from ringfence.connector.store.writer import Writer
from ringfence.jobs.auditing import audit
from ringfence.jobs.auditing.alarms.state import raise_alarms
from ringfence.jobs.auditing.audit import count_coverage, run_audit
from ringfence.jobs.config.load import load, load_values
from ringfence.jobs.integrity.chain_check import chain_words
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.samples.accounts import batches, reveal, sample_toml
from ringfence.jobs.samples.accounts import load as load_batch
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.models.sample.accounts import sample_graph

FIRST_ACCOUNTS = 2_000
SETS, CLASSES = 1_000, ("retail", "business", "mule", "exchange")
PLAN = Plan(runs=1, per_run=10, calibration=300)
UNSEALED = (
    "chain.append", "predictions.Digests.update", "runs.thresholds_digest",
    "labels.labels_digest", "labels.label_rows_digest", "coverage.seal_groups",
)  # fmt: skip
COMPARED_BY_RULES = ("require_sealed", "require_alarm_states", "require_coverage_rows")


class Project:
    """A store of its own, with one model and one run, and who writes to it."""

    def __init__(self, folder: Path, plan: Plan = PLAN) -> None:
        values = {
            "project": "bench",
            "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        }
        self.settings = load_values(values, folder / "ringfence.toml", {})
        self.store = open_store(f"sqlite:///{folder / 'audit.db'}")
        fill_store(self.store, self.settings, plan)
        key = chain_key(None, self.settings.engine.folder)
        self.writer = Writer(self.store, acquire(self.store, "bench", "bench", 86_400), key)
        with self.store.reading() as connection:
            newest = runs.newest_run(connection, "bench")
        columns = {name: getattr(newest, name) for name in runs.RunFacts.__dataclass_fields__}
        self.facts = runs.RunFacts(**columns)

    def run(
        self, number: int, sets: int = SETS, checked: bool = True, derivable: bool = True
    ) -> None:
        """One run and its audit: sets, classes for half of them, coverage, alarms."""
        if checked and sets == SETS:
            self.check(number, counted=False)
        decided = [_set(f"s:{number}-{i}", i) for i in range(sets)]
        facts = replace(self.facts, n_evaluated=sets)
        news = [f"s:{number - 1}-{i}" for i in range(0, sets, 2)]  # known since the run before
        fed = MonitorInput(tuple(news), tuple((i + 0.5) / sets for i in range(len(news))))
        basis = RunBasis(fed) if derivable else None
        seq = runs.decide(self.writer, Decision(facts, decided, [], basis=basis))
        runs.close_run(self.writer, seq, (), {})
        if sets == SETS:
            known = [
                labels.check_label(_open(one), KnownClass("retail"), CLASSES)
                for one in decided[::2]
            ]
            labels.record_labels(self.writer, known)
            if checked:
                self.check(number, counted=True)
            coverage.record_coverage(self.writer, count_coverage(self.store, self.settings))
            with ExitStack() as stack:
                for name in () if checked else COMPARED_BY_RULES:
                    stack.enter_context(mock.patch.object(alarms, name))
                raise_alarms(self.writer, self.settings)

    def check(self, number: int, *, counted: bool) -> None:
        """What a run (the one before it is answered now) or an audit compares before it decides."""
        with self.store.at_one_moment() as store, store.reading() as connection:
            basis = Basis(connection, "bench", self.writer.key)
            basis.require_runs()
            basis.require_labels(counted=counted)
            basis.require_consulted()
            basis.require_predictions({number + 2} if counted else {number + 1}, counted=counted)
            if counted:
                basis.require_coverage()
                mark_on_record(connection, "bench", self.writer.key)


def _set(key: str, i: int) -> Prediction:
    p = (0.9, 0.01 + i / 1e5, 0.02, 0.03)
    return Prediction(key, ("retail",), p, tuple(one - 1 for one in p), i % 7)


def _open(one: Prediction) -> OpenPrediction:
    classes, scores = dumps(one.classes), dumps(one.scores)
    return OpenPrediction(one.node_key, classes, scores, None, -0.5, "sample-1")


@contextmanager
def unsealed():
    """Work without chain entries and without the digests that they hold."""
    with ExitStack() as stack:
        for name in UNSEALED:
            target = f"ringfence.connector.store.{name}"
            stack.enter_context(mock.patch(target, return_value=""))
        yield


def measure_runs(folder: Path, pairs: int) -> dict[str, object]:
    """Runs in turns, each on its own store; the ratio is taken within a pair."""
    with_chain, without = Project(_new(folder, "with")), Project(_new(folder, "without"))
    unchecked, underived = Project(_new(folder, "unchecked")), Project(_new(folder, "underived"))
    sealed, plain, trusting, before = [], [], [], []
    for number in range(pairs + 2):
        gc.collect()
        a, _ = cpu_seconds(lambda n=number: with_chain.run(n))
        with unsealed():
            b, _ = cpu_seconds(lambda n=number: without.run(n, checked=False, derivable=False))
        c, _ = cpu_seconds(lambda n=number: unchecked.run(n, checked=False))
        d, _ = cpu_seconds(lambda n=number: underived.run(n, derivable=False))
        if number >= 2:  # the first ones pay for imports and compiled statements
            sealed.append(a)
            plain.append(b)
            trusting.append(c)
            before.append(d)
    ratio = statistics.median(a / b for a, b in zip(sealed, plain, strict=True))
    check = statistics.median(a / c for a, c in zip(sealed, trusting, strict=True))
    basis = statistics.median(a / d for a, d in zip(sealed, before, strict=True))
    return {
        "what": f"run and audit, {SETS:,} sets", "size": pairs,
        "seconds": statistics.median(sealed), "without": statistics.median(plain), "ratio": ratio,
        "unchecked": statistics.median(trusting), "check_ratio": check,
        "underived": statistics.median(before), "derived_ratio": basis,
    }  # fmt: skip


def measure_basis(folder: Path, count: int) -> dict[str, object]:
    """What one run compares after many runs of 1,000 sets, half of them of known class."""
    project = Project(_new(folder, f"basis-{count}"))
    for number in range(count):
        project.run(number, checked=False)
    counting, _ = cpu_seconds(lambda: count_coverage(project.store, project.settings), rounds=3)
    score, _ = cpu_seconds(lambda: project.check(count - 1, counted=False), rounds=3)
    audit, _ = cpu_seconds(lambda: project.check(count - 1, counted=True), rounds=3)
    return {
        "what": "rows that a run rests on, after runs", "size": count,
        "seconds": score, "audit": audit, "counting": counting,
    }  # fmt: skip


def measure_whole(folder: Path, pairs: int) -> list[dict[str, object]]:
    """Whole runs of 1,000 new accounts and their audits, each second one compares nothing."""
    from ringfence.jobs.training.train import run_training

    path = _new(folder, "whole") / "ringfence.toml"
    path.write_text(sample_toml("embedded", "bench"), encoding="utf-8")
    settings = load(path, PUBLISHED_KEY)
    sizes = [FIRST_ACCOUNTS] + [SETS] * (2 * pairs + 2)
    sample = sample_graph(sum(sizes), seed=0, mean_degree=8.0)
    parts = list(batches(sample, sizes))
    everybody, nobody = np.ones(sample.nodes, np.bool_), np.zeros(sample.nodes, np.bool_)
    seconds: dict[tuple[str, bool], list[float]] = defaultdict(list)
    with embedded.running(settings.engine.folder / "neo4j"), open_workspace(settings) as workspace:
        run_migrations(workspace)
        load_batch(workspace.graph, sample, parts[0], everybody, lambda *_: None)
        run_training(workspace)
        for number, part in enumerate(parts[1:]):
            load_batch(workspace.graph, sample, part, nobody, lambda *_: None)
            checked = (number // 2 + number) % 2 == 0  # who comes first changes from pair to pair
            with nullcontext() if checked else trusting():
                score, report = cpu_seconds(lambda: run_scoring(workspace))
                reveal(workspace.graph, sample, part.nodes[::2])
                audit_, _ = cpu_seconds(lambda: run_audit(workspace))
            assert report.evaluated == SETS
            if number >= 2:
                seconds["score", checked].append(score)
                seconds["audit", checked].append(audit_)
    return [_whole_row(verb, seconds[verb, True], seconds[verb, False]) for verb in
            ("score", "audit")]  # fmt: skip


def _whole_row(verb: str, sealed: list[float], trusting: list[float]) -> dict[str, object]:
    ratios = sorted(a / b for a, b in zip(sealed, trusting, strict=True))
    return {
        "what": f"whole {verb}, {SETS:,} sets", "size": len(ratios),
        "seconds": statistics.median(sealed), "unchecked": statistics.median(trusting),
        "check_ratio": statistics.median(ratios), "lowest": ratios[0], "highest": ratios[-1],
    }  # fmt: skip


@contextmanager
def trusting():
    """Verbs that compare nothing of what they read from SQL, as before there was a comparison."""
    required = [name for name in vars(Basis) if name.startswith("require_")]
    with ExitStack() as stack:
        for name in required:
            stack.enter_context(mock.patch.object(Basis, name))
        for name in COMPARED_BY_RULES:
            stack.enter_context(mock.patch.object(alarms, name))
        stack.enter_context(mock.patch.object(audit, "_read_mark", _read_mark))
        yield


def _read_mark(workspace, _writer):
    return coverage.mark_of(workspace.store, workspace.project)


def measure_start(folder: Path, members: int) -> dict[str, object]:
    """What `score` and `audit` compare before they begin."""
    project = Project(_new(folder, f"members-{members}"))
    manifest = json.dumps({"classes": CLASSES, "counts": {"calibration": members}})
    given = [Member(f"i:{i}", "calibration", i % 4) for i in range(members)]
    digest = sha256(manifest.encode()).hexdigest()
    time.sleep(0.01)  # SQLite's clock has milliseconds: the new model is the newest
    record_model(project.writer, "large", manifest, digest, given)
    seconds, _ = cpu_seconds(lambda: require_sound_record(project.writer), rounds=3)
    return {"what": "start of score, members", "size": members, "seconds": seconds}


def measure_trail(folder: Path, count: int) -> dict[str, object]:
    """What the Audit trail page compares each time."""
    project = Project(_new(folder, f"runs-{count}"))
    for number in range(count):
        project.run(number, sets=1)
    queries = ProjectQueries(project.store, "bench")
    seconds, (sound, sentence) = cpu_seconds(
        lambda: chain_words(queries, project.settings), rounds=3
    )
    assert sound, sentence
    return {"what": "check of the Audit trail page, runs", "size": count, "seconds": seconds}


def _new(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--whole", action="store_true", help="whole runs alone; nothing is kept")
    options = parser.parse_args()
    quick = options.quick
    with tempfile.TemporaryDirectory() as name:
        folder, rows = Path(name), []
        rows += measure_whole(folder, 3 if quick else 10)
        for row in rows:
            show(row)
        if options.whole:
            return
        work = [lambda: measure_runs(folder, 3 if quick else 15)]
        work += [
            lambda n=n: measure_start(folder, n) for n in (10_000, *([] if quick else [10**6]))
        ]
        work += [lambda n=n: measure_basis(folder, n) for n in (10, *([] if quick else [100]))]
        work += [lambda n=n: measure_trail(folder, n) for n in (100, *([] if quick else [10_000]))]
        for one in work:
            rows.append(one())
            show(rows[-1])
    keep("sealing", rows, quick)


if __name__ == "__main__":
    assert chain  # named in UNSEALED
    main()
