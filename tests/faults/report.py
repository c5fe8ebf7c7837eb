"""What the harness counted, as one table: `python -m tests.faults.report FILE …` joins several.

A fault's predictions are those first seen after it and before the next one. A check comes after
several faults in a row: what it finds stands in the row of the last of them, and the example names
all.
"""

import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from tests.faults import checker
from tests.faults.changes import CHANGES
from tests.faults.kinds import KINDS as PROCESS_FAULTS

KINDS = {**PROCESS_FAULTS, **CHANGES}
MAX_EXAMPLES = 40


@dataclass(slots=True)
class Tally:
    """What happened to one form on one store: counts by fault, and violations by their kind.

    `finished` counts faulty runs that came to their end unaided, `seen_after` violations by the
    last fault before the check.
    """

    form: str
    store: str
    faults: Counter[str] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)
    predictions: Counter[str] = field(default_factory=Counter)
    seen_after: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    checks: int = 0

    def note_violations(self, kind: str, texts: list[str], how: list[str]) -> None:
        """Count violations that were seen after the faults `how`, and show some at once."""
        self.violations[kind] += len(texts)
        self.seen_after[how[-1]] += len(texts)
        for text in texts[:3]:
            self.examples.append(f"{self.form}, {self.store}, {' + '.join(how)}: {kind}: {text}")
            print(self.examples[-1], file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class ControlResult:
    """Violations that were seen without a protection."""

    form: str
    without: str
    violations: dict[str, int]


@dataclass(frozen=True, slots=True)
class Report:
    """What all forms and stores of some runs of the harness counted."""

    tallies: list[Tally]
    controls: list[ControlResult]

    @property
    def exit_code(self) -> int:
        """0 where no promise was broken and every control was seen."""
        broken = any(tally.violations.total() for tally in self.tallies)
        return int(broken or not all(control.violations for control in self.controls))

    def as_json(self) -> str:
        """Return the report as `read_report` takes it."""
        names = [column.name for column in fields(Tally)]
        tallies = [{name: getattr(tally, name) for name in names} for tally in self.tallies]
        controls = [asdict(control) for control in self.controls]
        return json.dumps({"tallies": tallies, "controls": controls})

    def print(self) -> None:
        """Print the tables, then examples of violations."""
        print_table(
            ("form", "store", "fault", "faults", "finished unaided", "predictions", "violations"),
            [row for tally in self.tallies for row in fault_rows(tally)],
        )
        print_table(
            ("form", "store", "checks", *checker.KINDS),
            [
                (
                    tally.form,
                    tally.store,
                    tally.checks,
                    *(tally.violations[k] for k in checker.KINDS),
                )
                for tally in self.tallies
            ],
        )
        print_table(
            ("form", "without this protection", "violations seen"),
            [
                (control.form, control.without.replace("_", " "), seen_text(control.violations))
                for control in self.controls
            ],
        )
        for tally in self.tallies:
            print(*tally.examples[:MAX_EXAMPLES], sep="\n", end="\n" if tally.examples else "")


def read_report(text: str) -> Report:
    """Return a report that `Report.as_json` wrote."""
    body = json.loads(text)
    counters = ("faults", "finished", "predictions", "seen_after", "violations", "endings")
    tallies = [
        Tally(**{**values, **{name: Counter(values[name]) for name in counters}})
        for values in body["tallies"]
    ]
    return Report(tallies, [ControlResult(**values) for values in body["controls"]])


def fault_rows(tally: Tally) -> list[tuple[object, ...]]:
    """Return a row for each kind of fault that happened, and one for all."""
    counters = (tally.faults, tally.finished, tally.predictions, tally.seen_after)
    rows: list[tuple[object, ...]] = [
        (tally.form, tally.store, kind.replace("_", " "), *(counter[kind] for counter in counters))
        for kind in KINDS
        if tally.faults[kind] or tally.seen_after[kind]
    ]
    totals = (counter.total() for counter in counters)
    return [*rows, (tally.form, tally.store, "**all faults**", *totals)]


def seen_text(violations: dict[str, int]) -> str:
    """Return violations by kind in words.

    >>> seen_text({"lost": 12, "verify": 1})
    '12 lost, 1 verify'
    """
    counts = ", ".join(f"{count} {kind}" for kind, count in violations.items())
    return counts or "NONE: the checker is blind"


def print_table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """Print a table in Markdown; nothing where it has no rows."""
    if rows:
        print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
        for row in rows:
            print(f"| {' | '.join(map(str, row))} |")


def main(files: list[str]) -> int:
    """Join the reports of several runs; 1 where one is missing or a promise was broken."""
    missing = [name for name in files if not Path(name).exists()]
    reports = [read_report(Path(name).read_text()) for name in files if name not in missing]
    tallies = [tally for report in reports for tally in report.tallies]
    controls = [control for report in reports for control in report.controls]
    joined = Report(sorted(tallies, key=lambda tally: (tally.form, tally.store)), controls)
    joined.print()
    for name in missing:
        print(f"{name} is missing: that run came to no end", file=sys.stderr)
    return 1 if missing else joined.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
