"""The states of alarms before a check, compared with their seals.

A state that is held at firing for one check would hide that the alarm begins to fire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from ringfence.connector.alarm_records import AlarmState
from ringfence.connector.store.audit_chain.preflight_check import newest_sealed, refuse_difference
from ringfence.connector.store.audit_chain.sealed_entries import Body, SealedEntries

STATES, EVENT = "alarms", "alarm"
KINDS = (STATES, EVENT)
FIRING = "firing"


def require_alarm_states(sealed: SealedEntries, states: Mapping[str, AlarmState]) -> None:
    """Raise `StoreError` where states are not those that the last check left."""
    for difference in _differences(sealed, states):
        refuse_difference(difference)


def require_newest_states(
    connection: Connection, project: str, key: bytes, states: Mapping[str, AlarmState]
) -> None:
    """Compare states with the newest entry about them, also where the chain is broken before it."""
    body, difference = newest_sealed(connection, project, key, STATES)
    refuse_difference(difference)
    if body is not None:
        refuse_difference(next(_state_differences(body["states"], states), None))


def _differences(sealed: SealedEntries, states: Mapping[str, AlarmState]) -> Iterator[str]:
    bodies = sealed.of_kind(STATES)
    if bodies:
        yield from _state_differences(bodies[-1]["states"], states)
    elif sealed.begun_now:
        yield from _state_differences({}, states)
    else:
        yield from _firing_differences(sealed.of_kind(EVENT), states)


def _state_differences(
    left: Mapping[str, Sequence[Any]], states: Mapping[str, AlarmState]
) -> Iterator[str]:
    for rule in sorted({*left, *states}):
        state = states.get(rule)
        if state is None or rule not in left:
            yield f"alarm {rule}: the row stands in one of SQL and the audit chain alone"
        elif [state.state, state.since_ns, state.words] != list(left[rule]):
            yield f"alarm {rule}: state, since_ns or words are not those that the last check left"


def _firing_differences(events: Sequence[Body], states: Mapping[str, AlarmState]) -> Iterator[str]:
    """Compare firing alarms alone: older versions sealed no other state."""
    last = {body["rule"]: body["state"] for body in events}
    for rule in sorted({*last, *states}):
        state = states.get(rule)
        if (last.get(rule) == FIRING) != (state is not None and state.state == FIRING):
            yield f"alarm {rule}: its state is not the one that was recorded"
