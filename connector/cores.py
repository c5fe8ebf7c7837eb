"""How many processors this process may use, and how its threads wait for each other.

A machine's processors are not the process's: a container has a quota, a scheduler pins a process to
some of them, a user sets OMP_NUM_THREADS. More threads than that only take turns.

Threads of OpenMP (torch, scikit-learn) wait for each other by spinning unless OMP_WAIT_POLICY says
otherwise. On a machine where anything else runs, they spin while the thread that they wait for has
no processor: an epoch on 2,000 nodes took 128 CPU ms with two spinning threads, 13 with two
that sleep and 11 with one (two cores, load 6).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "quota_cores",
    "usable_cores",
    "usable_openmp_threads",
    "usable_threads",
    "wait_passively",
]

WAIT_POLICY = "OMP_WAIT_POLICY"
CGROUPS, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
LIBRARIES_WITH_THREADS = ("torch", "sklearn")
_policy_at_loading: list[str] = []  # what was set when such a library read it


def usable_cores() -> int:
    """Return the processors that affinity and the cgroup's quota leave; at least 1."""
    quota = quota_cores()
    return _allowed_by_affinity() if quota is None else min(quota, _allowed_by_affinity())


def usable_threads() -> int:
    """Return how many threads may compute at once: `usable_cores`, or OMP_NUM_THREADS if fewer."""
    requested = _requested_threads()
    return usable_cores() if requested is None else min(requested, usable_cores())


def usable_openmp_threads() -> int:
    """Return how many threads of OpenMP may compute: 1 where they would spin while they wait."""
    return usable_threads() if _waits_passively() else 1


def wait_passively() -> None:
    """Let OpenMP's threads sleep while they wait; a policy that a user set stays.

    It is read when a library with such threads is loaded: call this first.
    """
    if not _policy_at_loading and _is_loaded():
        _policy_at_loading.append(os.environ.get(WAIT_POLICY, ""))
    os.environ.setdefault(WAIT_POLICY, "PASSIVE")


def _waits_passively() -> bool:
    """Return whether the threads of the libraries that are loaded, or will be, sleep."""
    policy = _policy_at_loading[0] if _policy_at_loading else os.environ.get(WAIT_POLICY, "")
    return policy.strip().upper() == "PASSIVE"


def quota_cores(cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int | None:
    """Return the whole processors that the cgroups of this process grant, None without a limit.

    Half a processor is 1, one and a half are 1: a second thread would use the quota up and then
    wait for the next period.
    """
    quotas = [quota for quota in _quotas(cgroups, membership) if quota is not None]
    return max(1, int(min(quotas))) if quotas else None


def _is_loaded() -> bool:
    return any(name in sys.modules for name in LIBRARIES_WITH_THREADS)


def _allowed_by_affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _requested_threads() -> int | None:
    """Return OMP_NUM_THREADS, its first number if it is a list; None if it is no count."""
    text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _quotas(cgroups: Path, membership: Path) -> Iterator[float | None]:
    """Yield the quota of each group that this process is in, and of all groups around it."""
    for line in _read(membership).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:
            for folder in _and_parents((cgroups, cgroups / "unified"), group):
                yield _quota_v2(folder)
        elif "cpu" in controllers.split(","):
            for folder in _and_parents((cgroups / controllers, cgroups / "cpu"), group):
                yield _quota_v1(folder)


def _and_parents(roots: tuple[Path, ...], group: str) -> Iterator[Path]:
    """Yield the folders of a group and of those around it, up to each root.

    Inside a container the group's name may be the host's, which does not exist there: the root is
    then the container's own group.
    """
    for root in roots:
        folder = root / group.strip().lstrip("/")
        yield folder
        yield from (parent for parent in folder.parents if parent.is_relative_to(root))


def _quota_v2(folder: Path) -> float | None:
    """Return processors from `cpu.max`: "max 100000" or "50000 100000"."""
    quota, _, period = _read(folder / "cpu.max").strip().partition(" ")
    return _share(quota, period)


def _quota_v1(folder: Path) -> float | None:
    quota = _read(folder / "cpu.cfs_quota_us").strip()
    return _share(quota, _read(folder / "cpu.cfs_period_us").strip())


def _share(quota: str, period: str) -> float | None:
    """Return quota / period; None where there is no limit ("max", -1) or nothing to read."""
    if not (quota.isdecimal() and period.isdecimal() and int(period) > 0 and int(quota) > 0):
        return None
    return int(quota) / int(period)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
