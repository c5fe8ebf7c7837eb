"""From findings to states: ok, pending, firing, no data, and which changes are events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ringfence.connector.alarm_records import AlarmState
from ringfence.connector.store import alarms
from ringfence.connector.store.alarms import AlarmFacts, CheckedAlarm, CoverageDecline
from ringfence.connector.store.writer import Writer
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.auditing.alarms.delivery import deliver
from ringfence.jobs.auditing.alarms.rules import RULES, Finding
from ringfence.jobs.config.settings import Settings

OK, PENDING, FIRING, NO_DATA = "ok", "pending", "firing", "no data"
NOTHING_PROMISED = "no such promise is in force any more"
MINUTE_NS = 60 * NANOSECONDS


def raise_alarms(
    writer: Writer, settings: Settings, declines: Sequence[CoverageDecline] = ()
) -> tuple[AlarmState, ...]:
    """Check every configured rule, record changes, deliver events."""
    pending_ns = int(settings.alarms.pending_minutes * MINUTE_NS)

    def check(facts: AlarmFacts, before: Mapping[str, AlarmState]) -> list[CheckedAlarm]:
        facts, checked = replace(facts, declines=tuple(declines)), []
        for rule in dict.fromkeys(settings.alarms.rules):
            if rule not in RULES:
                continue
            finding = RULES[rule](facts, settings.alarms)
            if finding is None and rule not in before:
                continue
            finding = finding or Finding(False, NOTHING_PROMISED)
            checked.append(advance(rule, before.get(rule), finding, facts.now_ns, pending_ns))
        return checked

    states = alarms.record_check(writer, check)
    deliver(writer, settings)
    return states


def raise_alarm(writer: Writer, rule: str, finding: Finding) -> None:
    """Record the finding of one rule; it fires at once, whatever `pending_minutes` is."""

    def check(now_ns: int, before: Mapping[str, AlarmState]) -> list[CheckedAlarm]:
        return [advance(rule, before.get(rule), finding, now_ns, pending_ns=0)]

    alarms.record_states(writer, check)


def advance(
    rule: str, before: AlarmState | None, finding: Finding, now_ns: int, pending_ns: int
) -> CheckedAlarm:
    """Return a rule's state after a check; what a first check finds ok or without data is no event.

    >>> first = advance("runs", None, Finding(False, "a run today"), now_ns=5, pending_ns=0)
    >>> first.after.state, first.was
    ('ok', None)
    >>> advance("runs", first.after, Finding(True, "none"), now_ns=9, pending_ns=0).was
    'ok'
    """
    was, since_ns = (before.state, before.since_ns) if before else (OK, now_ns)
    state = next_state(was, since_ns, finding.holds, now_ns, pending_ns)
    changed = state != was
    after = AlarmState(rule, state, finding.sentence, now_ns if changed else since_ns)
    is_event = changed and (before is not None or state not in {OK, NO_DATA})
    return CheckedAlarm(after, was if is_event else None)


def next_state(before: str, since_ns: int, holds: bool | None, now_ns: int, pending_ns: int) -> str:
    """Return the state after a check.

    >>> next_state("ok", 0, True, now_ns=5, pending_ns=10)
    'pending'
    >>> next_state("pending", 0, True, now_ns=10, pending_ns=10)
    'firing'
    >>> next_state("firing", 0, None, now_ns=11, pending_ns=10)
    'no data'
    """
    if holds is None:
        return NO_DATA
    if not holds:
        return OK
    if before == FIRING or pending_ns == 0:
        return FIRING
    return FIRING if before == PENDING and now_ns - since_ns >= pending_ns else PENDING
