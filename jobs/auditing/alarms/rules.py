"""The alarm rules: each checks its condition and says why. A rule is a function and a line.

The names are those of `[alarms] rules` in the configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringfence.connector.store.alarms import AlarmFacts
from ringfence.connector.times import NANOSECONDS, format_time
from ringfence.jobs.auditing.decline_evidence import describe_decline
from ringfence.jobs.auditing.list_audit import audit_runs
from ringfence.jobs.auditing.shortfalls import describe_shortfall, find_shortfalls
from ringfence.jobs.config.alarms import AlarmSettings
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor
from ringfence.models.guarantee.decline import DECLINE_DELTA
from ringfence.models.guarantee.selection import LARGE_DIFFERENCE

HOUR_NS = 3600 * NANOSECONDS
MAX_NAMED = 3  # classes or groups that an alarm names
MAX_SENTENCE_CHARS = 1_000
WATCH_DELTA = 0.01  # false alarms of the exchangeability monitor, over all time


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a rule's condition holds (None: no data to tell), and why."""

    holds: bool | None
    sentence: str


def _coverage(facts: AlarmFacts, settings: AlarmSettings) -> Finding:
    if facts.total is None or facts.total.known == 0:
        return Finding(None, "no class is known yet")
    if facts.total.verdict == "broken":
        return Finding(True, facts.total.words)
    if facts.newest_label_ns is None or _labels_are_late(facts, settings):
        return Finding(None, f"no class became known since {format_time(facts.newest_label_ns)}")
    return Finding(False, facts.total.words)


def _decline(facts: AlarmFacts, _settings: AlarmSettings) -> Finding:
    model = None if facts.total is None else facts.total.model
    of_model = [decline for decline in facts.declines if decline.model == model]
    if not of_model:
        return Finding(None, "no run is settled yet")
    alarm_at = len(of_model) / DECLINE_DELTA  # the error is shared by the alphas
    worst = max(of_model, key=lambda decline: decline.capital)
    return Finding(worst.capital >= alarm_at, describe_decline(worst, alarm_at))


def _classes(facts: AlarmFacts, settings: AlarmSettings) -> Finding | None:
    return _own_promises("class", facts, settings)


def _groups(facts: AlarmFacts, settings: AlarmSettings) -> Finding | None:
    return _own_promises("group", facts, settings)


def _own_promises(slice_: str, facts: AlarmFacts, settings: AlarmSettings) -> Finding | None:
    """Whether a class or group with a promise of its own was missed more often than promised."""
    rows = [row for row in facts.own_promises if row.slice == slice_]
    if not rows:
        return None
    broken = sorted((row for row in rows if row.verdict == "broken"), key=lambda r: r.anytime_p)
    if broken:
        said = "; ".join(f"{row.name}: {row.words}" for row in broken[:MAX_NAMED])
        more = f"; and {len(broken) - MAX_NAMED} more" if len(broken) > MAX_NAMED else ""
        return Finding(True, f"{said}{more}"[:MAX_SENTENCE_CHARS])
    if _labels_are_late(facts, settings):
        return Finding(None, f"no class became known since {format_time(facts.newest_label_ns)}")
    named = {"class": ("class", "classes"), "group": ("group", "groups")}[slice_]
    return Finding(False, f"no promise of {len(rows)} {named[len(rows) > 1]} is broken")


def _sample(facts: AlarmFacts, _settings: AlarmSettings) -> Finding | None:
    """Whether the audit sample, which nobody chose, crossed its anytime bound."""
    row = facts.sample
    if row is None:
        return None
    if row.verdict == "not enough known yet":
        return Finding(None, row.words)
    return Finding(row.verdict == "broken", row.words)


def _lists(facts: AlarmFacts, _settings: AlarmSettings) -> Finding | None:
    """Whether a list that is still made broke its promise: more of its nodes are wrong."""
    listed = facts.listed
    if not listed.runs:
        return None
    current = {item.terms for item in listed.runs[-1].lists}
    rows = audit_runs(listed.runs, listed.counts, listed.early)
    totals = [row for row in rows if row.slice in ("total", "sample")]
    totals = [row for row in totals if row.terms in current]
    broken = [row.words for row in totals if row.verdict == "broken"]
    if broken:
        return Finding(True, "; ".join(broken))
    return Finding(False, "; ".join(row.words for row in totals))


def _unseen(facts: AlarmFacts, _settings: AlarmSettings) -> Finding:
    if not facts.unseen:
        return Finding(False, "every class that became known was in the training")
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(facts.unseen.items()))
    count = sum(facts.unseen.values())
    return Finding(True, f"{count} nodes have a class that the model never saw: {listed[:300]}")


def _drift(facts: AlarmFacts, _settings: AlarmSettings) -> Finding:
    if facts.last_run is None or not facts.last_run.watch:
        return Finding(None, "the exchangeability monitor has seen no class yet")
    monitor = ExchangeabilityMonitor.from_dict(facts.last_run.watch["state"])
    holds = monitor.alarm(WATCH_DELTA) if monitor.labels else None
    return Finding(holds, monitor.describe(WATCH_DELTA))


def _bias(facts: AlarmFacts, _settings: AlarmSettings) -> Finding:
    compared = [(row.bias, row.bias_words) for row in facts.totals if row.bias is not None]
    if not compared:
        return Finding(None, "too few nodes of known or unknown class to compare")
    largest, words = max(compared)
    return Finding(largest > LARGE_DIFFERENCE, words)


def _shift(facts: AlarmFacts, _settings: AlarmSettings) -> Finding:
    shift = None if facts.last_run is None else facts.last_run.shift
    if not shift or not shift["compared"]:
        return Finding(None, "no run has compared its nodes with the calibration nodes yet")
    alike = "the nodes of the last run are like the calibration nodes, as far as tests can tell"
    return Finding(bool(shift["sentence"]), shift["sentence"] or alike)


def _shortfall(facts: AlarmFacts, _settings: AlarmSettings) -> Finding:
    if not any(row.known for row in facts.named):
        return Finding(None, "no class is known yet")
    short = [row for row in find_shortfalls(facts.named) if not row.own_promise]
    if not short:
        return Finding(False, "no class and no group is covered far below what is promised")
    more = f"; and {len(short) - MAX_NAMED} more" if len(short) > MAX_NAMED else ""
    return Finding(True, "; ".join(map(describe_shortfall, short[:MAX_NAMED])) + more)


def _labels(facts: AlarmFacts, settings: AlarmSettings) -> Finding:
    if facts.newest_label_ns is None:
        return Finding(None, "no class is known yet")
    late = _labels_are_late(facts, settings)
    return Finding(late, f"a class became known last at {format_time(facts.newest_label_ns)}")


def _runs(facts: AlarmFacts, settings: AlarmSettings) -> Finding:
    if facts.last_run is None:
        return Finding(None, "there is no run yet")
    late = facts.now_ns - facts.last_run.decided_ns > settings.no_run_hours * HOUR_NS
    return Finding(late, f"the last run was at {format_time(facts.last_run.decided_ns)}")


def _labels_are_late(facts: AlarmFacts, settings: AlarmSettings) -> bool:
    return facts.now_ns - (facts.newest_label_ns or 0) > settings.no_data_hours * HOUR_NS


RECORD = "record"
"""Rule of the scheduled job `verify`; audits leave its state as it is."""

RULES: dict[str, Callable[[AlarmFacts, AlarmSettings], Finding | None]] = {
    "coverage": _coverage,
    "decline": _decline,
    "classes": _classes,
    "groups": _groups,
    "sample": _sample,
    "lists": _lists,
    "shortfall": _shortfall,
    "unseen": _unseen,
    "drift": _drift,
    "bias": _bias,
    "shift": _shift,
    "labels": _labels,
    "runs": _runs,
}
"""By name. A rule that returns None has nothing to judge: no such promise is in force."""
