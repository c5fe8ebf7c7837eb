"""When a run is settled: its classes are known as far as they usually are, each class at its share.

Classes rarely become known in a random order. If one class is known early, nodes that join one by
one fill the window with it, and a level that is answered by them follows them alone; the promise
then holds for them instead of for all nodes. So the nodes of a run join together, and the run
answers for the level, once it is *settled*:

1. at once, when 95 % of its classes are known and, of the runs that could be known by now, either
   99 % of the nodes are or no class is clearly short;
2. otherwise when it is as old as classes usually take (the *usual delay*), some are known, and no
   class is clearly short of its usual share among the known nodes of the runs of that age;
3. at the latest at twice the usual delay, with what is known by then. While a class of the training
   has never been seen since, that is after a year, or after twice the declared delay where there is
   one: how late it comes is not known, and until then calibration is that of the training.

The usual delay is measured per class (`settled_age`), on runs that are old enough to show it: of a
young run only early classes can be known, so that it would always look settled. It is the smallest
that 99 % of the nodes, by the usual shares of their classes, have come by; a class that comes later
than a year, and than twice what half of the nodes take, is not waited for. Usual shares are those
of the training, and of the newest long-settled runs once these hold enough nodes: a share that has
really changed stops nothing for ever. Runs are long settled after the longest wait, so while a
class was never seen the shares of the training stand for a year. Older versions waited 90 runs,
however long these took (`FORMER_WAIT_RUNS`), and keep that. Labels of a settled run that come later
join as they come; the run has answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

KNOWN_BY_THEN = 0.95
"""Share of a run's known classes that had come by its own settled age."""

RUNS_BY_THEN = 0.8
"""Share of runs that had settled by the common age: one run over a backlog delays no other."""

NEWEST_RUNS = 40
"""How many of the runs that are old enough are measured: the time that classes take may change."""

FIRST_RUNS = 5
"""Before so many runs only those settle that are known nearly whole: no delay can be measured."""

NEARLY_ALL = 0.95
"""Share of a run's nodes that is nearly all of them."""

MAX_MISSING_SHARE = 0.01
"""What is missing holds no run back where it is no larger a share of the nodes."""

MAX_WAIT_DAYS = 365
"""How long a run waits for a class that was never seen, where no delay is declared."""

FORMER_WAIT_RUNS = 90
"""The same in versions that were trained before it was a time."""

MIN_SHARE_NODES = 100
"""Known nodes of long-settled runs from which on they say what is usual, not the training."""

SHORT_P, SHORT_SHARE = 0.01, 0.5
"""A class is short at less than half of its usual share, if chance is that low in 1 of 100."""

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Labels:
    """The known classes: place of the run that evaluated each node, class, and how many runs later.

    All [labels]. class_of is -1 for a class that the model never saw.
    """

    of_run: Ints
    class_of: Ints
    lags: Ints


@dataclass(frozen=True, slots=True)
class SettledRuns:
    """Which runs are settled, and why others are not.

    ready: whether each run is settled [runs].
    overdue: whether it is because it waited long enough, with some class short [runs].
    delay: how many runs classes usually take; None before any is known.
    limit: after how many runs one with some known class is settled whatever is missing.
    usual: usual share of each class [classes].
    delays: how many runs each class takes [classes], NEVER before it was seen.
    short: classes that are clearly short of their usual share among runs that wait.
    missing: the same among runs that are overdue.
    left_out: classes that come too late to be waited for.
    trained: share of each class at the training [classes].
    unseen: classes of the training that were clearly never seen since.
    """

    ready: Mask
    overdue: Mask
    delay: int | None
    limit: int
    usual: Floats
    delays: Ints
    short: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()
    trained: Floats = field(default_factory=lambda: np.zeros(0))
    unseen: tuple[int, ...] = ()


def settled_age(of_run: Ints, lags: Ints) -> int:
    """Return after how many runs a run's classes have usually come; 0 before any is known.

    Args:
        of_run: place of the run that evaluated each known node [labels].
        lags: how many runs after that one its class was noticed [labels].

    >>> settled_age(np.array([0, 0, 1, 1, 2]), np.array([1, 2, 2, 2, 2]))
    2
    """
    order = np.lexsort((lags, of_run))
    _, first, labels = np.unique(of_run[order], return_index=True, return_counts=True)
    if not len(first):
        return 0
    ages = lags[order][first + np.ceil(KNOWN_BY_THEN * labels - 1e-9).astype(np.int64) - 1]
    return int(np.quantile(ages, RUNS_BY_THEN, method="inverted_cdf"))


def settle_runs(
    evaluated: Ints,
    labels: Labels,
    usual: Floats | None = None,
    declared: int | None = None,
    longest: int = MAX_WAIT_DAYS,
    *,
    between: bool = False,
) -> SettledRuns:
    """Return which runs are settled when the next one is made.

    Args:
        evaluated: how many nodes each run evaluated [runs].
        labels: the classes that are known.
        usual: shares of the classes at the training [classes]; None where nothing is known of them.
        declared: after how many runs classes are known, as the configuration has it.
        longest: how many runs one waits for a class that was never seen, NEVER for as long as it
            takes; a year of daily runs where nothing is given.
        between: whether this is asked between two runs: what the next one will know is not all
            there yet, so runs count as old as the last one saw them.

    >>> runs = np.array([0] * 10 + [1] * 10 + [2])
    >>> labels = Labels(runs, np.zeros(21, np.int64), np.ones(21, np.int64))
    >>> settle_runs(np.array([10, 10, 10]), labels).ready.tolist()
    [True, True, False]
    """
    runs = len(evaluated)
    age = runs - np.arange(runs) - int(between)
    counts = _count_classes(runs, labels, 0 if usual is None else len(usual))
    delays = _delays(age, labels, counts.shape[1])
    trained = _usual_shares(counts, usual)
    waits = _Waits.measure(delays, trained, trained, declared, longest)
    shares = _newer_shares(counts, age, waits)
    if shares is not None:
        waits = _Waits.measure(delays, shares, trained, declared, longest)
    unseen = _unseen(delays, trained, int((labels.class_of >= 0).sum()))
    known = np.bincount(labels.of_run, minlength=runs)
    some, old = known > 0, age >= waits.limit
    if waits.delay is None:
        nobody = some & False
        return SettledRuns(
            nobody, nobody, None, waits.limit, waits.usual, delays, trained=trained, unseen=unseen
        )
    nearly, in_time = some & (known >= NEARLY_ALL * evaluated), age >= waits.delay
    early_short = _short_unless_known(counts, evaluated, nearly & (age < waits.early_until), waits)
    pool = in_time & ~old
    short = _short(counts[pool], waits)
    late_short = _short_unless_known(counts, evaluated, pool, waits)
    short_at = np.where(age < waits.early_until, bool(early_short), bool(late_short) & ~old)
    whole = nearly & ~short_at
    due = some & ~whole & in_time & (runs >= FIRST_RUNS)
    overdue = due & old
    missing = _short(counts[overdue], waits)
    return SettledRuns(
        whole | overdue | (due & (not short)),
        overdue & bool(missing),
        waits.delay,
        waits.limit,
        waits.usual,
        delays,
        (early_short or short) if bool((some & ~whole & ~old).any()) else (),
        missing,
        waits.left_out,
        trained,
        unseen,
    )


@dataclass(frozen=True, slots=True)
class _Waits:
    """How long runs wait, by the delays of the classes and their usual shares.

    Until `early_until` a run that is known nearly whole may lack a class that is still to come.
    """

    early_until: int
    delay: int | None
    limit: int
    usual: Floats
    left_out: tuple[int, ...]

    @classmethod
    def measure(
        cls, delays: Ints, usual: Floats, trained: Floats, declared: int | None, longest: int
    ) -> _Waits:
        """Return the waits; `trained` are the shares that a late class had before it was late."""
        seen = delays < NEVER
        if not seen.any():
            return cls(0, None, 2 * declared if declared else longest, usual, ())
        longest = max(longest, 2 * (declared or 0), 2 * _delay_of(delays, usual, 0.5))
        waited_for = seen & (delays <= longest)
        delay = _delay_of(delays[waited_for], usual[waited_for], 1.0 - MAX_MISSING_SHARE)
        never_seen = float(usual[~seen].sum()) > MAX_MISSING_SHARE
        if never_seen and declared is not None:
            delay = max(delay, declared)
        limit = max(2 * delay, longest if never_seen and declared is None else 0)
        left_out = np.flatnonzero(seen & ~waited_for & (trained > MAX_MISSING_SHARE))
        early_until = limit if never_seen else delay
        return cls(early_until, max(1, delay), max(2, limit), usual, tuple(left_out.tolist()))


def _delay_of(delays: Ints, usual: Floats, share: float) -> int:
    """The smallest delay by which a share of the nodes of the classes that were seen has come."""
    seen = np.flatnonzero(delays < NEVER)
    if not len(seen):
        return 0
    order = seen[np.argsort(delays[seen], kind="stable")]
    weights = usual[order] if usual[order].sum() > 0 else np.ones(len(order))
    come = np.cumsum(weights) / weights.sum()
    last = min(int(np.searchsorted(come, share - 1e-12)), len(order) - 1)
    return int(delays[order[last]])


def _count_classes(runs: int, labels: Labels, classes: int) -> Ints:
    """Known nodes of each run and class [runs, classes]."""
    classes = max(classes, int(labels.class_of.max(initial=-1)) + 1)
    counts = np.zeros((runs, classes), np.int64)
    seen = labels.class_of >= 0
    np.add.at(counts, (labels.of_run[seen], labels.class_of[seen]), 1)
    return counts


def _usual_shares(counts: Ints, usual: Floats | None) -> Floats:
    """Shares at the training; of all known nodes where nothing is known of it."""
    given = counts.sum(axis=0).astype(np.float64) if usual is None else np.asarray(usual, float)
    given = np.concatenate([given, np.zeros(counts.shape[1] - len(given))])
    return np.asarray(given / max(float(given.sum()), 1e-12))


def _newer_shares(counts: Ints, age: Ints, waits: _Waits) -> Floats | None:
    """Shares of the newest long-settled runs; None where these hold too few nodes."""
    long_settled = np.flatnonzero((age >= waits.limit) & (counts.sum(axis=1) > 0))[-NEWEST_RUNS:]
    nodes = counts[long_settled].sum(axis=0)
    return nodes / nodes.sum() if nodes.sum() >= MIN_SHARE_NODES else None


def _unseen(delays: Ints, trained: Floats, known: int) -> tuple[int, ...]:
    """Classes of more than 1 % at the training of which chance alone would have shown some."""
    unseen = (delays == NEVER) & (trained > MAX_MISSING_SHARE)
    return tuple(np.flatnonzero(unseen & ((1.0 - trained) ** known < SHORT_P)).tolist())


def _short_unless_known(
    counts: Ints, evaluated: Ints, pool: Mask, waits: _Waits
) -> tuple[int, ...]:
    """Classes that are short among some runs; none where nearly nothing of these is unknown."""
    nodes = int(evaluated[pool].sum())
    if counts[pool].sum() >= (1.0 - MAX_MISSING_SHARE) * nodes:
        return ()
    return _short(counts[pool], waits)


def _short(counts: Ints, waits: _Waits) -> tuple[int, ...]:
    """Classes that are clearly short of their usual share among some runs' known nodes."""
    return short_classes(counts.sum(axis=0), waits.usual, waits.left_out)


def short_classes(of_class: Ints, usual: Floats, left_out: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return the classes that are clearly short of their usual share among some known nodes.

    Args:
        of_class: known nodes of each class [classes].
        usual: usual share of each class [classes].
        left_out: classes that are not waited for.

    >>> short_classes(np.array([20, 0]), np.array([0.1, 0.9])), short_classes(
    ...     np.array([3, 17]), np.array([0.1, 0.9]))
    ((1,), ())
    """
    nodes = int(of_class.sum())
    if not nodes:
        return ()
    from scipy.special import bdtr  # half a CPU second that a run without waiting classes saves

    chance = bdtr(of_class.astype(float), nodes, np.clip(usual, 0.0, 1.0))
    short = (of_class < SHORT_SHARE * usual * nodes) & (chance < SHORT_P)
    short[list(left_out)] = False
    found_missing = float((usual - of_class / nodes)[short].sum())
    return tuple(np.flatnonzero(short).tolist()) if found_missing > MAX_MISSING_SHARE else ()


def _delays(age: Ints, labels: Labels, classes: int) -> Ints:
    """How many runs each class takes [classes]."""
    delays = np.full(classes, NEVER)
    for class_ in np.unique(labels.class_of[labels.class_of >= 0]):
        of_class = labels.class_of == class_
        delays[class_] = _waiting_time(age, labels.of_run[of_class], labels.lags[of_class])
    return delays


def _waiting_time(age: Ints, of_run: Ints, lags: Ints) -> int:
    """The settled age of runs that are at least twice as old; first of the older half of all."""
    time = _age_of(age[of_run] * 2 >= len(age), of_run, lags)
    while True:
        old = age[of_run] >= 2 * time
        newest = np.unique(of_run[old])[-NEWEST_RUNS:]
        longer = _age_of(old & (of_run >= newest.min(initial=len(age))), of_run, lags)
        if longer <= time:
            return time
        time = longer


def _age_of(among: Mask, of_run: Ints, lags: Ints) -> int:
    return settled_age(of_run[among], lags[among])
