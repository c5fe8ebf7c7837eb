"""Whether the audit sample is large enough to notice within a quarter that coverage has fallen."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ringfence.connector.records import RunCount
from ringfence.connector.store.calibration.joined import run_counts
from ringfence.connector.store.engine import Store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.sample import count_sample
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.schedule.triggers import times_per_year
from ringfence.jobs.setup.finding import Finding
from ringfence.models.guarantee.sample_size import FALSE_ALARMS, POWER, nodes_to_notice

QUARTER_DAYS = 90
DAY_NS = 86_400 * NANOSECONDS
DAYS_PER_YEAR = 365.25
MAX_FALL = 0.05
"""Coverage of 85 % instead of 90 %; where fewer may be missed, twice as many missed as may be."""


def check_sample(store: Store, settings: Settings) -> Iterator[Finding]:
    """How many nodes a quarter needs, and each run; how many are drawn, and are not known yet."""
    alpha = settings.conformal.alphas[0]
    promised, fall = 1 - alpha, min(MAX_FALL, alpha)
    if promised <= fall:  # there is nothing that coverage could fall to
        return
    needed = nodes_to_notice(promised, promised - fall)
    to_notice = (
        f"{needed:,} sampled nodes of known class notice within a quarter that coverage is "
        f"{100 * (promised - fall):g} % instead of {100 * promised:g} % (power {100 * POWER:.0f} % "
        f"at {100 * FALSE_ALARMS:.0f} % false alarms, binomial)"
    )
    yield _compare(settings.audit.sample_nodes, needed, to_notice, _runs_a_day(store, settings))
    counts = count_sample(ProjectQueries(store, settings.project))
    if counts.unknown:
        yield Finding(
            "ok",
            f"{counts.unknown:,} of {counts.nodes:,} nodes of the audit sample are not known yet",
            "ringfence worklist --sample",
        )


def _compare(drawn: int, needed: int, to_notice: str, runs_a_day: float) -> Finding:
    """Compare what runs draw in a quarter with what is needed."""
    if not runs_a_day:
        text = "no audit sample" if not drawn else f"runs draw {drawn:,} nodes each"
        return Finding("ok", f"{text}, and no run is on record or scheduled yet: {to_notice}")
    per_run = max(1, math.ceil(needed / (runs_a_day * QUARTER_DAYS)))
    at_rate = f"at {runs_a_day:.3g} runs a day that is sample_nodes = {per_run:,}"
    if not drawn:
        step = f"set [audit] sample_nodes = {per_run}, where labels are selective"
        return Finding("ok", f"no audit sample: {to_notice}; {at_rate}", step)
    a_quarter = math.floor(drawn * runs_a_day * QUARTER_DAYS)
    text = f"runs draw {drawn:,} nodes each, {a_quarter:,} a quarter: {to_notice}"
    if a_quarter >= needed:
        return Finding("ok", text)
    return Finding("warning", f"{text}; {at_rate}", f"set [audit] sample_nodes = {per_run}")


def _runs_a_day(store: Store, settings: Settings) -> float:
    """Runs a day in the newest quarter on record, or else as scheduled; 0 where neither tells."""
    runs = run_counts(store, settings.project)
    newest = [run for run in runs if runs[-1].decided_ns - run.decided_ns <= QUARTER_DAYS * DAY_NS]
    if measured := _measured_rate(newest):
        return measured
    schedule = settings.schedule
    a_year = times_per_year(schedule.time_of("score"), schedule.timezone, "score")
    return a_year / DAYS_PER_YEAR


def _measured_rate(runs: list[RunCount]) -> float:
    """Runs a day between the first and the last of some runs; 0 where they span no day.

    >>> _measured_rate([RunCount(1, 0, 9), RunCount(2, DAY_NS, 9), RunCount(3, 2 * DAY_NS, 9)])
    1.0
    """
    span_ns = runs[-1].decided_ns - runs[0].decided_ns if runs else 0
    return (len(runs) - 1) * DAY_NS / span_ns if span_ns >= DAY_NS else 0.0
