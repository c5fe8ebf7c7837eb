"""The exchangeability monitor derived again from the p-values that the run fed it with.

The p-values themselves follow from the network's outputs on the graph of that run, which nobody
keeps; they are sealed. That each is of a node whose class became known since the run before, and
fed once, is compared as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ringfence.connector.store.calibration.run_basis import (
    NOTHING_FED,
    MonitorInput,
    StoredInput,
    read_inputs,
)
from ringfence.connector.store.engine import dumps
from ringfence.jobs.integrity.derivation.findings import Findings
from ringfence.jobs.integrity.derivation.history import DecidedRun, History
from ringfence.jobs.scoring.monitor import HELD, describe_state
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor

SUBJECT = "monitor states"
NO_INPUT = "of runs whose version sealed no p-values of the monitor"


@dataclass(frozen=True, slots=True)
class _Seen:
    """Up to when classes were noticed that the monitor has seen, also of runs that wait."""

    mark_ns: int
    held: Mapping[int, int]

    @classmethod
    def after(cls, watch: Any) -> _Seen:
        """What the column `watch` of the run before says; None: there is no such run."""
        if watch is None:
            return cls(0, {})
        held = {int(run): int(since) for run, since in watch.get(HELD, {}).items()}
        return cls(int(watch["mark_ns"]), held)

    def up_to(self, run: int) -> int:
        """Up to when classes of the nodes of a run were noticed that the monitor has seen."""
        return self.held.get(run, self.mark_ns)


class MonitorStates:
    """Derives run after run; holds which nodes were fed already, by version."""

    def __init__(self, history: History) -> None:
        self.history = history
        reader = history.reader
        self._inputs: Mapping[int, StoredInput] = read_inputs(reader.connection, reader.project)
        self._fed: dict[str, set[str]] = {}

    def derive(self, run: DecidedRun, findings: Findings) -> None:
        """Compare the column `watch` of a run with the state before it and what it was fed."""
        if run.facts["watch"] is None:
            return
        if run.basis is None:
            findings.leave(SUBJECT, NO_INPUT)
            return
        fed = self._inputs.get(run.seq, NOTHING_FED).read()
        findings.compare(SUBJECT, *self._problems(run, fed))
        self._fed.setdefault(run.version, set()).update(fed.node_keys)

    def _problems(self, run: DecidedRun, fed: MonitorInput) -> Iterator[str]:
        last = self._last_watch(run)
        start = ExchangeabilityMonitor.start()
        before = start if last is None else ExchangeabilityMonitor.from_dict(last["state"])
        seen = _Seen.after(last)
        noticed = [self._noticed_ns(run.version, key) for key in fed.node_keys]
        yield from self._input_problems(run, fed, noticed, seen)
        mark = max([seen.mark_ns, *(time for time in noticed if time is not None)])
        recorded = json.loads(run.facts["watch"])
        held = {int(waiting): seen.up_to(int(waiting)) for waiting in recorded.get(HELD, {})}
        if held:  # the mark passes labels that wait, which are fed later
            mark = max(mark, int(recorded["mark_ns"]))
        expected = json.loads(dumps(describe_state(before, mark, fed.p_values, held)))
        for name in sorted({*recorded, *expected}):
            if recorded.get(name) != expected.get(name):
                yield (
                    f"run {run.seq}: watch ({name}) is {recorded.get(name)}, but the state before "
                    f"it and the p-values that it was fed with give {expected.get(name)}"
                )

    def _input_problems(
        self, run: DecidedRun, fed: MonitorInput, noticed: list[int | None], seen: _Seen
    ) -> Iterator[str]:
        """Compare the fed nodes with the classes that became known since the run before."""
        already = self._fed.get(run.version, set())
        for key, time in zip(fed.node_keys, noticed, strict=True):
            where = f"monitor_input of run {run.seq}: node_keys has {key}"
            if time is None:
                yield f"{where}, which this version did not evaluate or whose class was not known"
            elif time <= seen.up_to(self._run_of(key)) or key in already:
                yield f"{where}, whose class an earlier run was fed with"
        if len(set(fed.node_keys)) != len(fed.node_keys):
            yield f"monitor_input of run {run.seq}: node_keys has a node twice"

    def _run_of(self, key: str) -> int:
        """The run that evaluated a node; 0 where there is none."""
        node = self.history.place.get(key)
        return 0 if node is None else int(self.history.run_of[node])

    def _noticed_ns(self, version: str, key: str) -> int | None:
        """When the class of a node was noticed first; None where it was not to be fed."""
        history = self.history
        node = history.place.get(key)
        if node is None or (known := history.known[node]) is None:
            return None
        by = history.runs.get(history.run_of[node])
        return known.noticed_ns if by is not None and by.version == version else None

    def _last_watch(self, run: DecidedRun) -> Any:
        """The state after the version's last run that has one."""
        for other in self.history.earlier(run):
            if other.version == run.version and other.facts["watch"] is not None:
                return json.loads(other.facts["watch"])
        return None
