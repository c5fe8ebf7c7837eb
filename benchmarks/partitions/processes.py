"""Memory and CPU time of processes, from /proc: peaks of a stage, and what all hold at one time."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
SECONDS_BETWEEN_LOOKS = 0.5


def peak_mb(process: int) -> float:
    """Most memory that a process held since `begin_peak`, mapped files that it touched too."""
    return _field(PROC / str(process) / "status", "VmHWM:")


def begin_peak(process: int) -> None:
    """Let the peak begin anew from what is held now."""
    with suppress(OSError):
        (PROC / str(process) / "clear_refs").write_text("5")


def cpu_seconds(process: int) -> float:
    """CPU time of a process so far."""
    with suppress(OSError):
        fields = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    return 0.0


def share_mb(process: int) -> float:
    """What a process holds now, pages that it shares counted by its share of them."""
    return _field(PROC / str(process) / "smaps_rollup", "Pss:")


def processes_of(folder: Path) -> list[int]:
    """Processes whose command line names a folder: those of a cluster that was started in it."""
    found = []
    for place in PROC.glob("[0-9]*"):
        with suppress(OSError):
            if os.fsencode(folder) in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found


class TogetherPeak:
    """The most that groups of processes held at one time, looked at twice a second."""

    def __init__(self, groups: dict[str, Sequence[int]]) -> None:
        self.groups, self._over = groups, threading.Event()
        self.peaks = dict.fromkeys(groups, 0.0)
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Forget what was seen."""
        self.peaks = dict.fromkeys(self.groups, 0.0)

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(SECONDS_BETWEEN_LOOKS):
            held: dict[int, float] = {}
            for name, members in self.groups.items():
                for one in members:
                    held.setdefault(one, share_mb(one))
                now = sum(held[one] for one in members)
                self.peaks[name] = max(self.peaks[name], now)


def _field(path: Path, name: str) -> float:
    with suppress(OSError):
        for line in path.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1e3
    return 0.0
