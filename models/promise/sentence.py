"""The promise in force as a sentence: what holds, for whom, under which condition.

Three things decide it: for which nodes it holds (all, classes, groups), whether calibration
nodes stay those of training (`frozen`), and whether the level adapts. Only `frozen` without an
adaptive level keeps the theorem of the paper, about every node; an adaptive level promises the long
run of nodes whose class becomes known. No mode promises a single week.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.models.promise.options import PromiseOptions

if TYPE_CHECKING:
    from ringfence.models.calibration.sets.base import CalibrationSetKind
    from ringfence.models.promise.base import PromiseKind

NOT_PROMISED = "no single week and no single node is promised"
NO_OPTIONS = PromiseOptions()


def describe_promise(
    promise: PromiseKind,
    alpha: float,
    calibration_set: CalibrationSetKind,
    adapt: bool,
    options: PromiseOptions = NO_OPTIONS,
) -> str:
    """Return the promise in force.

    >>> from ringfence.models.calibration.sets.registry import calibration_set_named
    >>> from ringfence.models.promise.registry import promise_named
    >>> frozen, window = map(calibration_set_named, ("frozen", "window"))
    >>> describe_promise(promise_named("marginal"), 0.1, frozen, adapt=False)
    'every node: its set holds its class with probability at least 90 %, if new nodes are \
exchangeable with the calibration nodes'
    >>> describe_promise(promise_named("marginal"), 0.1, window, adapt=True)
    'the long run: of the nodes whose class becomes known, 90 % are covered, but for what changes \
in the time that classes take; no single week and no single node is promised'
    >>> mules = PromiseOptions({"mule": 0.05})
    >>> describe_promise(promise_named("class"), 0.1, frozen, False, mules)[:74]
    'every node of a class: at most 10 % of each class are missed (mule: 5 %), '
    """
    if adapt:
        share = promise.share_in_the_long_run(alpha, options)
        return (
            f"the long run: of the nodes whose class becomes known, {share}, but for what changes "
            f"in the time that classes take; {NOT_PROMISED}"
        )
    if not calibration_set.uses_recent_labels:
        share = promise.share_of_every_node(alpha, options)
        return f"{share}, if new nodes are exchangeable with the calibration nodes"
    return (
        f"about: {promise.share(alpha, options)}, as far as new nodes are like the newest of known "
        f"class; under change nothing is proved, and {NOT_PROMISED}"
    )
