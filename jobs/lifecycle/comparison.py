"""Comparisons on the holdout as recorded: which version is better, which baselines none beats.

The result of a comparison, as `jobs.training.comparison` writes it:

    {"nodes": 120, "by": "accuracy", "alpha": 0.1, "class_nodes": {"mule": 12, …},
     "versions": ["20260102…", "20260101…"],
     "ways": {"20260102…": {"metrics": {"accuracy": [0.81, 0.74, 0.88], …}, "recall": {…}}, …},
     "differences": [{"of": "20260102…", "than": "largest class", "metrics": {…}, "recall": {…}}],
     "notes": [], "graph": ["20260102…: the relationships help: …"]}

Three numbers are a value and its 95 % interval; a difference is `of` minus `than`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.connector.json_types import JsonObject
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.comparisons import StoredComparison, comparisons_of
from ringfence.connector.times import format_time
from ringfence.jobs.config.settings import Settings
from ringfence.models.comparison.judgement import (
    WORDS,
    Verdict,
    describe_difference,
    is_better,
    judge_difference,
)
from ringfence.models.comparison.paired import CONFIDENCE, METHOD, Comparison
from ringfence.models.promise.registry import promise_named

LARGEST_CLASS = "largest class"
OWN_COLUMNS = "own columns alone"
ONE_HOP = "trees, own + one hop"
BASELINES = (LARGEST_CLASS, OWN_COLUMNS, ONE_HOP)
"""What a model has to beat, without a network; the last two are boosted trees."""

DESCRIPTIONS = {
    LARGEST_CLASS: "the largest class",
    OWN_COLUMNS: "boosted trees on the node's own columns",
    ONE_HOP: "boosted trees on the node and its neighbours",
}
"""The baselines in a sentence; records and tables have their names."""


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

    def as_json(self) -> JsonObject:
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
    return promise_named(settings.conformal.promise).compare_by


def result_json(
    comparison: Comparison,
    versions: Sequence[str],
    notes: Sequence[str],
    *,
    by: str,
    alpha: float,
    nodes_sha256: str,
) -> JsonObject:
    """Return what is stored of a comparison: the versions first, then the baselines."""
    pairs = [(versions[0], versions[1])] if len(versions) > 1 else []
    pairs += [(version, name) for version in versions for name in BASELINES]
    return {
        "nodes": comparison.nodes,
        "nodes_sha256": nodes_sha256,
        "class_nodes": dict(zip(comparison.classes, comparison.class_nodes, strict=True)),
        "alpha": alpha,
        "by": by,
        "method": METHOD,
        "confidence": CONFIDENCE,
        "versions": list(versions),
        "ways": {name: comparison.own(name).as_json() for name in comparison.names},
        "differences": [
            {"of": of, "than": than, **comparison.difference(of, than).as_json()}
            for of, than in pairs
        ],
        "notes": list(notes),
    }


def holdout_report(stored: StoredComparison) -> HoldoutReport:
    """Return a comparison for people."""
    result = stored.values
    shown = [name for name in WORDS if name in result["ways"][result["versions"][0]]["metrics"]]
    rows = tuple(
        (name, *(_number(way["metrics"].get(metric)) for metric in shown))
        for name, way in result["ways"].items()
    )
    return HoldoutReport(
        stored.version,
        stored.against,
        format_time(stored.at_ns),
        result["nodes"],
        ("way", *(WORDS[name] for name in shown)),
        rows,
        tuple(describe(stored)),
        result,
    )


def describe(stored: StoredComparison) -> list[str]:
    """Say how the versions of a comparison compare with each other and with the baselines."""
    result = stored.values
    sentences = []
    if stored.against is not None:
        numbers = _difference(result, stored.version, stored.against)["metrics"][result["by"]]
        sentences.append(
            f"{stored.version} is "
            f"{judge_difference(result['by'], numbers)} than {stored.against} in "
            f"{WORDS[result['by']]} ({describe_difference(numbers)})"
        )
    for version in result["versions"]:
        sentences += not_beaten(result, version)
    return [*sentences, *result.get("graph", []), *result["notes"]]


def not_beaten(result: Mapping[str, Any], version: str) -> list[str]:
    """Say which baselines a version does not beat; nothing where it beats all of them."""
    sentences = []
    for name in BASELINES:
        numbers = _difference(result, version, name)["metrics"][result["by"]]
        if (judged := judge_difference(result["by"], numbers)) != "better":
            sentences.append(
                f"{version} is {judged} than {DESCRIPTIONS[name]} in {WORDS[result['by']]} on "
                f"{result['nodes']:,} nodes of the holdout ({describe_difference(numbers)})"
            )
    return sentences


def better_by_the_rule(stored: StoredComparison, bound: float) -> Verdict:
    """Say whether the version may replace the other one: the rule of `[retrain] promote`."""
    result = stored.values
    if stored.against is None:
        reasons = "; ".join(result["notes"]) or "there is no other version to compare with"
        return Verdict(False, reasons)
    difference = _difference(result, stored.version, stored.against)
    return is_better(result["by"], difference, result["class_nodes"], bound)


def newest_of(comparisons: Sequence[StoredComparison], version: str) -> StoredComparison | None:
    """Return the newest comparison that a version took part in, on either side."""
    for stored in reversed(comparisons):
        if version in (stored.version, stored.against):
            return stored
    return None


def newest_comparison(store: Store, project: str, version: str) -> StoredComparison:
    """Return the newest comparison that a version took part in; there must be one."""
    newest = newest_of(comparisons_of(store, project), version)
    if newest is None:
        raise KeyError(f"version {version} was never compared")
    return newest


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
        for sentence in not_beaten(newest.values, version)
    ]


def holdout_metric(comparisons: Sequence[StoredComparison], version: str) -> str:
    """Return the metric that versions are compared by, of one version, for a table."""
    newest = newest_of(comparisons, version)
    if newest is None:
        return ""
    result = newest.values
    value = result["ways"][version]["metrics"][result["by"]][0]
    beaten = len(BASELINES) - len(not_beaten(result, version))
    return f"{WORDS[result['by']]} {value:.3f}, beats {beaten} of {len(BASELINES)}"


def _difference(result: Mapping[str, Any], of: str, than: str) -> Mapping[str, Any]:
    for difference in result["differences"]:
        if (difference["of"], difference["than"]) == (of, than):
            numbers: Mapping[str, Any] = difference
            return numbers
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
