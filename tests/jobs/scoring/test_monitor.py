"""The monitor of a run: labels of an early class wait on record until the others are known."""

import json

from ringfence.connector.store.models import find_active_manifest
from ringfence.connector.store.runs import newest_monitored_run
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.scoring import monitor
from ringfence.jobs.scoring.score import run_scoring
from tests.stores import sqlite


def watched(grown):
    """Score once more; return the column `watch` of the run."""
    run_scoring(grown.workspace)
    store, project = grown.workspace.store, grown.workspace.project
    version = json.loads(find_active_manifest(store, project))["version"]
    return newest_monitored_run(store, project, version).watch


def play(grown):
    """Two runs more, after one class and after all classes of the first run became known."""
    nodes = grown.first.nodes[~grown.labelled[grown.first.nodes]]
    early = nodes[grown.sample.y[nodes] == 0]
    seen = []
    for revealed, later in zip((early, nodes), grown.later, strict=True):
        grown.reveal(revealed)
        run_audit(grown.workspace)
        grown.arrive(later)
        seen.append(watched(grown))
    return len(nodes), len(early), seen


@sqlite
def test_labels_of_an_early_class_wait_until_the_run_is_known(scored):
    every, _, (first, second) = play(scored)
    assert (first["new"], first["held"]) == (0, {"1": 0})
    assert second["new"] == every
    assert "held" not in second
    assert run_verification(scored.workspace).problems == ()


@sqlite
def test_without_waiting_the_early_class_is_compared_alone(scored, monkeypatch):
    monkeypatch.setattr(monitor, "find_early_runs", lambda *_: frozenset())
    every, early, (first, second) = play(scored)
    assert (first["new"], second["new"]) == (early, every - early)
