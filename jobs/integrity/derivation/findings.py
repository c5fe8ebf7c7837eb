"""What a derivation found: entries that don't follow, and how many were derived or could not be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MAX_LISTED = 20  # of one subject; of the others only the number is listed


@dataclass(frozen=True, slots=True)
class Derived:
    """How much of a subject follows from the entries before it.

    derived: how many were derived and compared. not_derivable: how many are sealed and can't be
    derived, by the reason: they are compared with their seal alone.
    """

    subject: str
    derived: int
    not_derivable: dict[str, int]


@dataclass(slots=True)
class Findings:
    """Problems by subject, and counts; filled while the chain is gone through."""

    subjects: tuple[str, ...] = ()
    if_any: tuple[str, ...] = ()
    _problems: dict[str, list[str]] = field(default_factory=dict)
    _derived: Counter[str] = field(default_factory=Counter)
    _sealed: dict[str, Counter[str]] = field(default_factory=dict)

    def compare(self, subject: str, *problems: str, count: int = 1) -> None:
        """Count what was derived, with what does not follow."""
        self._derived[subject] += count
        self._problems.setdefault(subject, []).extend(problems)

    def leave(self, subject: str, reason: str, count: int = 1) -> None:
        """Count what is sealed and can't be derived."""
        self._sealed.setdefault(subject, Counter())[reason] += count

    def problems(self) -> list[str]:
        """Return what does not follow, the first ones of each subject."""
        listed = []
        for subject, problems in self._problems.items():
            listed += problems[:MAX_LISTED]
            if len(problems) > MAX_LISTED:
                more = len(problems) - MAX_LISTED
                listed.append(f"… and {more} more {subject} that don't follow")
        return listed

    def summary(self) -> tuple[Derived, ...]:
        """Return the counts of every subject, but for those of `if_any` without any entry."""
        return tuple(
            Derived(subject, self._derived[subject], dict(self._sealed.get(subject, {})))
            for subject in self.subjects
            if subject not in self.if_any or self._derived[subject] or subject in self._sealed
        )
