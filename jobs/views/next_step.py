"""What to do next where a promise is broken: the command, and the version that would do better."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.lifecycle.comparison import better_by_the_rule, newest_of
from ringfence.jobs.lifecycle.shadow_summary import read_shadows
from ringfence.jobs.views.doubts import PROMISE_ALARMS
from ringfence.jobs.views.version_names import short_versions

WORST_CLASS = 0.05
"""By how much the recall of a class may be lower, as `[retrain] worst_class` without a setting."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """Why something is to be done, in a sentence, and the command that does it."""

    why: str
    command: str


def find_next_step(queries: ProjectQueries, broken: bool) -> NextStep | None:
    """Return what to do where something is `broken` or an alarm about the promise is firing."""
    firing = [alarm.rule for alarm in queries.alarms() if alarm.state == "firing"]
    promise = [rule for rule in firing if rule in PROMISE_ALARMS]
    if not broken and not firing:
        return None
    if not broken and not promise:
        return NextStep(f"The alarm {firing[0]} is firing; its reason stands below.",
                        "ringfence status")  # fmt: skip
    return _better_version(queries) or NextStep(
        "No version on record is known to do better: train one on the classes of today, compare.",
        "ringfence train && ringfence models compare",
    )


def _better_version(queries: ProjectQueries) -> NextStep | None:
    """A version with better coverage of its shadow sets, else one that is better on the holdout."""
    models = queries.models()
    active = next((model.version for model in models if model.state == "active"), None)
    others = [model.version for model in reversed(models) if model.version != active]
    shadows, comparisons = read_shadows(queries.store, queries.project), queries.comparisons()
    for version in others:
        shadow = shadows.get(version)
        gap = None if shadow is None else shadow.coverage_difference
        if shadow is not None and gap is not None and gap.low > 0:
            return _promote(
                version,
                f"its sets, made beside those in force, cover {100 * gap.difference:.1f} points "
                f"more of {shadow.known:,} known nodes",
            )
    for version in others:
        stored = newest_of(comparisons, version)
        if stored is None or (stored.version, stored.against) != (version, active):
            continue
        verdict = better_by_the_rule(stored, WORST_CLASS)
        if verdict.better:
            return _promote(version, verdict.words)
    return None


def _promote(version: str, why: str) -> NextStep:
    short = short_versions(version)
    return NextStep(
        f"Version {short} would do better: {short_versions(why)}.",
        f'ringfence promote {short} --reason "the promise is not kept"',
    )
