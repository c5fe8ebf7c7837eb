"""Comparisons on the holdout as they are on record: which version is better, what none beats.

The result of a comparison, as `jobs.training.comparison` writes it:

    {"nodes": 120, "by": "accuracy", "alpha": 0.1, "class_nodes": {"mule": 12, …},
     "versions": ["20260102…", "20260101…"],
     "ways": {"20260102…": {"metrics": {"accuracy": [0.81, 0.74, 0.88], …}, "recall": {…}}, …},
     "differences": [{"of": "20260102…", "than": "largest class", "metrics": {…}, "recall": {…}}],
     "notes": []}

Three numbers are a value and its 95 % interval; a difference is `of` minus `than`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.comparisons import StoredComparison, comparisons_of
from ringfence.connector.times import format_time
from ringfence.jobs.config.settings import Settings
from ringfence.models.comparison.judgement import (
    WORDS,
    Verdict,
    describe_difference,
    is_better,
    judge,
)
from ringfence.models.comparison.paired import CONFIDENCE, METHOD, Comparison

LARGEST_CLASS = "largest class"
OWN_COLUMNS = "own columns alone"
ONE_HOP = "trees, own + one hop"
BASELINES = (LARGEST_CLASS, OWN_COLUMNS, ONE_HOP)
"""What a model has to beat, without a network; the last two are boosted trees."""


@dataclass(frozen=True, slots=True)
class HoldoutReport:
    """A comparison for people: a row of metrics per way, and what follows from it."""

    version: str
    against: str | None
    at: str
    nodes: int
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
    result: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return what `ringfence models compare --json` prints."""
        return {
            "version": self.version,
            "against": self.against,
            "at": self.at,
            "sentences": list(self.sentences),
            **self.result,
        }


def compare_by(settings: Settings) -> str:
    """Return the metric that versions are compared by: under a promise per class macro-F1."""
    by = settings.model.compare_by
    if by != "auto":
        return by
    return "macro_f1" if settings.conformal.promise == "class" else "accuracy"


def result_json(
    found: Comparison,
    versions: Sequence[str],
    notes: Sequence[str],
    *,
    by: str,
    alpha: float,
    nodes_sha256: str,
) -> dict[str, Any]:
    """Return what is kept of a comparison; `found` has the versions first, then the baselines."""
    pairs = [(versions[0], versions[1])] if len(versions) > 1 else []
    pairs += [(version, name) for version in versions for name in BASELINES]
    return {
        "nodes": found.nodes,
        "nodes_sha256": nodes_sha256,
        "class_nodes": dict(zip(found.classes, found.class_nodes, strict=True)),
        "alpha": alpha,
        "by": by,
        "method": METHOD,
        "confidence": CONFIDENCE,
        "versions": list(versions),
        "ways": {name: found.own(name).as_json() for name in found.names},
        "differences": [
            {"of": one, "than": other, **found.difference(one, other).as_json()}
            for one, other in pairs
        ],
        "notes": list(notes),
    }


def holdout_report(stored: StoredComparison) -> HoldoutReport:
    """Return a comparison for people."""
    found = stored.found
    shown = [name for name in WORDS if name in found["ways"][found["versions"][0]]["metrics"]]
    rows = tuple(
        (name, *(_number(way["metrics"].get(metric)) for metric in shown))
        for name, way in found["ways"].items()
    )
    return HoldoutReport(
        stored.version,
        stored.against,
        format_time(stored.at_ns),
        found["nodes"],
        ("way", *(WORDS[name] for name in shown)),
        rows,
        tuple(describe(stored)),
        found,
    )


def describe(stored: StoredComparison) -> list[str]:
    """Say how the versions of a comparison stand to each other and to the baselines."""
    found = stored.found
    sentences = []
    if stored.against is not None:
        numbers = _difference(found, stored.version, stored.against)["metrics"][found["by"]]
        sentences.append(
            f"{stored.version} is {judge(found['by'], numbers)} than {stored.against} in "
            f"{WORDS[found['by']]} ({describe_difference(numbers)})"
        )
    for version in found["versions"]:
        sentences += not_beaten(found, version)
    return [*sentences, *found["notes"]]


def not_beaten(found: Mapping[str, Any], version: str) -> list[str]:
    """Say which baselines a version does not beat; nothing where it beats all of them."""
    sentences = []
    for name in BASELINES:
        numbers = _difference(found, version, name)["metrics"][found["by"]]
        if (judged := judge(found["by"], numbers)) != "better":
            sentences.append(
                f"{version} is {judged} than {name} in {WORDS[found['by']]} on "
                f"{found['nodes']:,} nodes of the holdout ({describe_difference(numbers)})"
            )
    return sentences


def better_by_the_rule(stored: StoredComparison, bound: float) -> Verdict:
    """Say whether the version may take the other one's place: the rule of `[retrain] promote`."""
    found = stored.found
    if stored.against is None:
        reasons = "; ".join(found["notes"]) or "there is no other version to compare with"
        return Verdict(False, reasons)
    difference = _difference(found, stored.version, stored.against)
    return is_better(found["by"], difference, found["class_nodes"], bound)


def newest_of(comparisons: Sequence[StoredComparison], version: str) -> StoredComparison | None:
    """Return the newest comparison that a version took part in, on either side."""
    for one in reversed(comparisons):
        if version in (one.version, one.against):
            return one
    return None


def newest_comparison(store: Store, project: str, version: str) -> StoredComparison:
    """Return the newest comparison that a version took part in; there must be one."""
    found = newest_of(comparisons_of(store, project), version)
    if found is None:
        raise KeyError(f"version {version} was never compared")
    return found


def warnings_of(
    comparisons: Sequence[StoredComparison], states: Sequence[tuple[str, str]]
) -> list[str]:
    """Say what the version in use, and the newest candidate after it, do not beat.

    `states` are the versions with their states, oldest first.
    """
    judged = [version for version, state in states if state == "active"]
    if states and states[-1][1] == "candidate":
        judged.append(states[-1][0])
    return [
        f"the {'model in use' if at == 0 else 'newest candidate'} {sentence}"
        for at, version in enumerate(judged)
        if (newest := newest_of(comparisons, version)) is not None
        for sentence in not_beaten(newest.found, version)
    ]


def holdout_metric(comparisons: Sequence[StoredComparison], version: str) -> str:
    """Return the metric that versions are compared by, of one version, for a table."""
    newest = newest_of(comparisons, version)
    if newest is None:
        return ""
    found = newest.found
    value = found["ways"][version]["metrics"][found["by"]][0]
    beaten = len(BASELINES) - len(not_beaten(found, version))
    return f"{WORDS[found['by']]} {value:.3f}, beats {beaten} of {len(BASELINES)}"


def _difference(found: Mapping[str, Any], of: str, than: str) -> Mapping[str, Any]:
    for one in found["differences"]:
        if (one["of"], one["than"]) == (of, than):
            values: Mapping[str, Any] = one
            return values
    raise KeyError(f"no difference between {of} and {than}")


def _number(numbers: Sequence[float | None] | None) -> str:
    """A value with its interval.

    >>> _number([0.5, 0.4, 0.6])
    '0.500 (0.400 to 0.600)'
    """
    if numbers is None or numbers[0] is None:
        return ""
    value, low, high = numbers
    return f"{value:.3f}" + (f" ({low:.3f} to {high:.3f})" if low is not None else "")
