"""How late classes come, by the project's own record, and whether the level can bear it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ringfence.connector.errors import ModelError
from ringfence.connector.store.engine import Store
from ringfence.connector.store.models import active_manifest
from ringfence.connector.store.runs import newest_run_of_model
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.promise import PromiseTerms, terms_in_force
from ringfence.jobs.scoring.calibration.calibration_set import read_settled
from ringfence.jobs.scoring.calibration.settled_notes import SETTLED_KEY, describe_frozen
from ringfence.jobs.setup.finding import Finding
from ringfence.models.calibration.adaptive_level import THEN, largest_stable_step


def check_late_classes(store: Store, settings: Settings) -> Iterator[Finding]:
    """The last run's words on late classes; a warning where they make the level swing."""
    try:
        manifest = json.loads(active_manifest(store, settings.project))
    except ModelError:
        return
    terms = terms_in_force(settings.conformal, manifest)
    last = newest_run_of_model(store, settings.project, manifest["version"])
    if last is None:
        return
    if not terms.uses_recent_labels:
        words = describe_frozen(read_settled(store, settings, manifest))
        yield from (Finding("ok", sentence) for sentence in words)
        return
    record = (last.levels or {}).get(SETTLED_KEY, {})
    yield from (Finding("ok", f"run {last.seq}: {words}") for words in record.get("words", []))
    yield from _check_swing(terms, _delay(record, last.levels or {}))


def _delay(record: Mapping[str, Any], levels: Mapping[str, Any]) -> int:
    """The usual delay in runs; of older runs the most that ever waited for their answer."""
    if record.get("delay") is not None:
        return int(record["delay"])
    return max((int(state["waiting"]) for state in levels.get("adaptive", [])), default=0)


def _check_swing(terms: PromiseTerms, delay: int) -> Iterator[Finding]:
    if not terms.adapt or terms.adapt_rule != THEN:
        return
    largest = largest_stable_step(delay)
    if terms.adapt_step >= largest:
        yield Finding(
            "warning",
            f"classes come {delay} runs late, and the level of this model counts misses at the "
            f"level that a run used: with adapt_step = {terms.adapt_step:g} it swings between full "
            f"and small sets (stable below {largest:.2g})",
            'set [conformal] adapt_rule = "today"; or: ringfence train',
        )
