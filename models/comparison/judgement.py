"""Which version is better: a difference counts if its whole interval is on one side of zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ringfence.models.comparison.outcome import HIGHER_IS_BETTER

Judgement = Literal["better", "worse", "no better"]
Numbers = Sequence[float | None]
"""Value, low and high, as a record has them."""

MIN_CLASS_NODES = 10
"""Recall of a class with fewer compared nodes is not judged."""

WORDS = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "log_loss": "log loss",
    "set_size": "mean set size",
    "singleton_hits": "singleton hits",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a version is better than another one by the rule, and why, or why not."""

    better: bool
    words: str


def judge_difference(metric: str, difference: Numbers) -> Judgement:
    """Say whether a difference (this - other) of a metric is better, worse, or may be chance.

    >>> judge_difference("accuracy", [0.05, 0.01, 0.09])
    'better'
    >>> judge_difference("log_loss", [0.05, 0.01, 0.09])
    'worse'
    >>> judge_difference("accuracy", [0.05, -0.01, 0.11])
    'no better'
    """
    _, low, high = difference
    if low is None or high is None:
        return "no better"
    sign = 1 if HIGHER_IS_BETTER[metric] else -1
    worst, best = sorted((sign * low, sign * high))
    if worst > 0:
        return "better"
    return "worse" if best < 0 else "no better"


def is_better(
    metric: str, difference: Mapping[str, Any], class_nodes: Mapping[str, int], bound: float
) -> Verdict:
    """Apply the rule: better in `metric` beyond the interval, and no class's recall much lower.

    Args:
        metric: by which versions are compared.
        difference: `metrics` and `recall` of this version minus those of the other one.
        class_nodes: compared nodes by class; classes with fewer than ten are not judged.
        bound: by how much the recall of a class may be lower.

    >>> difference = {"metrics": {"accuracy": [0.05, 0.01, 0.09]}, "recall": {"a": [-0.2, -0.3, 0]}}
    >>> is_better("accuracy", difference, {"a": 40}, 0.05).words
    'better in accuracy (+0.050, 95 % interval +0.010 to +0.090), but class a is found less often \
(recall -0.200, at most -0.050 is allowed)'
    """
    interval = difference["metrics"][metric]
    judged = judge_difference(metric, interval)
    how = f"{judged} in {WORDS[metric]} ({describe_difference(interval)})"
    if judged != "better":
        return Verdict(False, how)
    for name, values in difference["recall"].items():
        if class_nodes.get(name, 0) >= MIN_CLASS_NODES and (values[0] or 0.0) < -bound:
            return Verdict(
                False,
                f"{how}, but class {name} is found less often (recall {values[0]:+.3f}, at most "
                f"{-bound:+.3f} is allowed)",
            )
    return Verdict(True, f"{how}, and no class is found less often by more than {bound:g}")


def describe_difference(numbers: Numbers) -> str:
    """Return a difference with its interval, in words.

    >>> describe_difference([0.05, 0.01, 0.09])
    '+0.050, 95 % interval +0.010 to +0.090'
    """
    value, low, high = (float("nan") if number is None else number for number in numbers)
    return f"{value:+.3f}, 95 % interval {low:+.3f} to {high:+.3f}"
