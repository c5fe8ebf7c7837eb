"""The exchangeability monitor: two martingales fed with every class that becomes known.

One false-alarm probability delta covers both and all time: each is held to 2 / delta, so that by
Ville's inequality and the union bound P(either ever alarms | exchangeable) <= delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ringfence.models.exchangeability.martingales import Martingale


@dataclass(frozen=True, slots=True)
class ExchangeabilityMonitor:
    """State of the monitor of one model version; resumes from JSON to the bit.

    >>> monitor = ExchangeabilityMonitor.start().after([0.4, 0.9, 0.2])
    >>> monitor.labels, monitor.alarm(delta=0.01)
    (3, False)
    >>> ExchangeabilityMonitor.from_dict(monitor.as_dict()) == monitor
    True
    """

    jumper: Martingale
    mixture: Martingale

    @classmethod
    def start(cls) -> ExchangeabilityMonitor:
        """A monitor that has seen nothing: one per model version."""
        return cls(Martingale.start("jumper"), Martingale.start("mixture"))

    def after(self, p_values: npt.ArrayLike) -> ExchangeabilityMonitor:
        """The monitor after the next smoothed p-values, in the order of the labels."""
        jumper, mixture = self.jumper.update_all(p_values)[0], self.mixture.update_all(p_values)[0]
        return ExchangeabilityMonitor(jumper, mixture)

    @property
    def labels(self) -> int:
        """How many labels it has seen."""
        return self.jumper.labels

    def alarm(self, delta: float) -> bool:
        """Whether either martingale ever reached 2 / delta."""
        if not 0 < delta < 1:
            raise ValueError(f"delta {delta:g}; a probability in (0, 1) is needed, such as 0.01")
        return self.jumper.alarm(delta / 2) or self.mixture.alarm(delta / 2)

    def alarm_at(self, delta: float) -> int | None:
        """The label by which the higher martingale had reached its peak, if there is an alarm."""
        return self._leader().peak_at if self.alarm(delta) else None

    def describe(self, delta: float) -> str:
        """The finding for a person, with the odds behind it.

        >>> ExchangeabilityMonitor.start().describe(0.01)
        'no class has become known yet: nothing to monitor'
        """
        if not self.labels:
            return "no class has become known yet: nothing to monitor"
        lead = self._leader()
        peak, alarm_at = _times(lead.log_peak), f"alarm at {2 / delta:g}"
        if self.alarm(delta):
            return (
                f"exchangeability is broken: after {lead.peak_at} of {self.labels} labels the "
                f"{lead.kind} martingale had multiplied its capital {peak}-fold "
                f"({alarm_at}). If nothing had changed, this would ever happen with "
                f"probability at most {delta:.3g} in the life of one model version"
            )
        return f"no sign of a change in {self.labels} labels: evidence {peak} ({alarm_at})"

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        return {"jumper": self.jumper.as_dict(), "mixture": self.mixture.as_dict()}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> ExchangeabilityMonitor:
        """The monitor that `as_dict` described."""
        jumper, mixture = stored["jumper"], stored["mixture"]
        return cls(Martingale.from_dict(jumper), Martingale.from_dict(mixture))

    def _leader(self) -> Martingale:
        return max(self.jumper, self.mixture, key=lambda m: m.log_peak)


def _times(log_factor: float) -> str:
    """A factor as text, short at any size.

    >>> _times(math.log(12.3)), _times(1000.0)
    ('12.3', '10^434')
    """
    if log_factor < math.log(1e6):
        return f"{math.exp(log_factor):.3g}"
    return f"10^{log_factor / math.log(10):.0f}"
