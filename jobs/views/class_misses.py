"""What share sets may miss of each class, under a promise per class: in a sentence about a set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ringfence.connector.records import Run
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.promise.registry import promise_named

MAX_NAMED_CLASSES = 3  # of a set, each with the share that may be missed of it


def describe_misses(inside: Sequence[str], class_alphas: Mapping[str, float]) -> str:
    """Say what share sets may miss of the classes in a set, and of the others.

    >>> describe_misses(["a", "b"], {"a": 0.1, "b": 0.1})
    'of true a nodes sets may miss 10 %, of true b nodes 10 %'
    >>> describe_misses(["a"], {"a": 0.05, "b": 0.1, "c": 0.2})
    'of true a nodes sets may miss 5 %, of those of other classes 10 % to 20 %'
    """
    named = inside[:MAX_NAMED_CLASSES]
    others = sorted({alpha for name, alpha in class_alphas.items() if name not in named})
    shares = [f"of true {name} nodes {_percent(class_alphas[name])}" for name in named[1:]]
    if others:
        between = " to ".join(_percent(alpha) for alpha in dict.fromkeys([others[0], others[-1]]))
        shares.append(f"of those of other classes {between}")
    first = f"of true {named[0]} nodes sets may miss {_percent(class_alphas[named[0]])}"
    return ", ".join([first, *shares])


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def class_alphas_of(run: Run, names: Sequence[str]) -> dict[str, float] | None:
    """What share of each class a run's sets may miss; None without a promise per class."""
    if not promise_named(run.promise).per_class:
        return None
    alphas = PromiseOptions.recorded(json.loads(run.options)).classes
    return {name: alphas.get(name, run.alpha) for name in names}


def describe_classes(
    inside: Sequence[str],
    classes: int,
    p: Mapping[str, float],
    alpha: float,
    class_alphas: Mapping[str, float] | None,
) -> tuple[str, str]:
    """What a set holds, and what its promise allows sets to miss where it excludes some class."""
    if not inside:
        beyond = "has a p-value above its own level"
        where = beyond if class_alphas is not None else f"reaches a p-value above {alpha:g}"
        return f"no class conforms: none of the {classes} classes {where}", ""
    if class_alphas is None and len(inside) == 1 and p[inside[0]] <= alpha:
        return (
            f"{inside[0]}, put into an empty set as the likeliest class "
            f"(p = {p[inside[0]]:.3g}): no class conforms at {alpha:g}"
        ), ""
    if len(inside) == classes:
        return f"nothing can be excluded: all {classes} classes are in the set", ""
    fitting = f"only {inside[0]} fits" if len(inside) == 1 else f"may be {' or '.join(inside)}"
    if class_alphas is not None:
        return fitting, f"; {describe_misses(inside, class_alphas)}"
    return fitting, f"; sets may miss {100 * alpha:g} % of nodes"
