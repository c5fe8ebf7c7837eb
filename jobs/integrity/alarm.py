"""The alarm of a failed verification: rule `record`, judged by the scheduled job `verify`.

`verify_quick` can make it fire, but not end: it looks at less. Its state and its changes are on
record like those of other rules. Where the record itself can't be added to (the chain's newest
entry was changed, or the store is older than the graph), the channels are notified all the same, by
every verification that finds it so.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.connector.alarm_records import AlarmEvent
from ringfence.connector.errors import LeaseHeld, LeaseLost, StoreError
from ringfence.connector.progress import Progress
from ringfence.jobs.auditing.alarms.delivery import deliver, tell_channels
from ringfence.jobs.auditing.alarms.rules import RECORD, Finding
from ringfence.jobs.auditing.alarms.state import raise_alarm
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace

SOUND = "everything on record is as it was decided"


def raise_record_alarm(workspace: Workspace, problems: Sequence[str], progress: Progress) -> None:
    """Make the rule `record` fire if there are problems, or end if not, and notify the channels."""
    if RECORD not in workspace.settings.alarms.rules:
        return
    finding = Finding(bool(problems), describe_problems(problems) if problems else SOUND)
    try:
        with write_session(workspace, progress) as session:
            raise_alarm(session.writer, RECORD, finding)
            deliver(session.writer, workspace.settings)
    except (LeaseHeld, LeaseLost):
        raise
    except StoreError as error:
        _tell_unrecorded(workspace, f"{finding.sentence}; not on record: {error.found}")


def describe_problems(problems: Sequence[str]) -> str:
    """Return how many problems there are, and the first one.

    >>> describe_problems(["lease: next_seq is 9", "run 3: state"])
    '2 problems: lease: next_seq is 9; to see all: ringfence verify'
    """
    count = f"{len(problems)} problems" if len(problems) > 1 else "1 problem"
    return f"{count}: {problems[0]}; to see all: ringfence verify"


def _tell_unrecorded(workspace: Workspace, sentence: str) -> None:
    with workspace.store.reading() as connection:
        now = workspace.store.now_ns(connection)
    event = AlarmEvent(0, now, RECORD, "", "firing", sentence, ())
    tell_channels(workspace.settings, workspace.project, event)
