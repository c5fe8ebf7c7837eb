"""The promise in force as a sentence: what holds, for whom, under which condition.

Three things decide it: who is promised something (all nodes, classes, groups), whether calibration
nodes stay those of training (`frozen`), and whether the level adapts. Only `frozen` without an
adaptive level keeps the theorem of the paper, about every node; an adaptive level promises the long
run of nodes whose class becomes known. No mode promises a single week.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Kind = Literal["marginal", "class", "group"]
CalibrationSet = Literal["window", "growing", "frozen"]

NOT_PROMISED = "no single week and no single node is promised"


def describe_promise(
    kind: Kind,
    alpha: float,
    calibration_set: CalibrationSet,
    adapt: bool,
    classes: Mapping[str, float] | None = None,
    group: str | None = None,
) -> str:
    """Return the promise in force; `group` is the property whose values are the groups.

    >>> describe_promise("marginal", 0.1, "frozen", adapt=False)
    'every node: its set holds its class with probability at least 90 %, if new nodes are \
exchangeable with the calibration nodes'
    >>> describe_promise("marginal", 0.1, "window", adapt=True)
    'the long run: of the nodes whose class becomes known, 90 % are covered, whatever changes; no \
single week and no single node is promised'
    >>> describe_promise("class", 0.1, "frozen", False, {"mule": 0.05})[:74]
    'every node of a class: at most 10 % of each class are missed (mule: 5 %), '
    """
    share = f"{100 * (1 - alpha):g} %"
    if kind == "class":
        what = f"at most {100 * alpha:g} % of each class are missed{_exceptions(classes or {})}"
    elif kind == "group":
        what = f"{share} of the nodes of each {group or 'group'} are covered"
    else:
        what = f"{share} are covered"
    if adapt:
        if kind == "group":
            what = f"all values of {group or 'the group'} together, {share} are covered"
        return (
            f"the long run: of the nodes whose class becomes known, {what}, whatever changes; "
            f"{NOT_PROMISED}"
        )
    if calibration_set == "frozen":
        whom = {"class": "every node of a class", "group": "every node of a group"}
        if kind == "marginal":
            what = f"its set holds its class with probability at least {share}"
        return (
            f"{whom.get(kind, 'every node')}: {what}, if new nodes are exchangeable with the "
            "calibration nodes"
        )
    return (
        f"about: {what}, as far as new nodes are like the newest of known class; under change "
        f"nothing is proved, and {NOT_PROMISED}"
    )


def _exceptions(classes: Mapping[str, float]) -> str:
    if not classes:
        return ""
    return f" ({', '.join(f'{name}: {100 * a:g} %' for name, a in classes.items())})"
