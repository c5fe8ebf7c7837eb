"""Hurt real runs many times and count what was lost: `python -m tests.faults.run --help`."""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import make_url

from tests.faults import checker, kinds
from tests.faults.breaks import CONTROLS, Control
from tests.faults.case import LEASE_SECONDS, Case, Servers, open_case
from tests.faults.changes import CHANGES
from tests.faults.forms import FORMS, Form
from tests.faults.kinds import Ground, Hurt, MessageCount, Window
from tests.faults.proxy import Proxy
from tests.faults.report import KINDS, ControlResult, Report, Tally
from tests.faults.servers import can_mount, neo4j, postgres, tmpfs
from tests.faults.worker import start

SHARES = {
    "kill_at_a_place": 36, "kill_at_a_time": 16, "freeze": 8, "cut_before_commit": 8,
    "cut_after_commit": 9, "cut_anywhere": 6, "sql_backend_killed": 10, "clock_jump": 6,
    "damaged_mirror": 6, "older_backup": 3, "relationships_deleted": 6, "nodes_deleted": 6,
    "features_changed": 6, "classes_changed": 6, "calibration_removed": 4, "damaged_tables": 6,
    "two_projects": 3, "schedule_reconfigured": 4, "promotion": 6,
}  # fmt: skip
ONLY_ON = {"sql_backend_killed": "postgresql", "older_backup": "sqlite", "disk_full": "sqlite"}
FAULTS_PER_CASE = 40
MAX_FAULTS_IN_A_ROW = 8
SEQUENCES_PER_RESTART, SEQUENCES_PER_FULL_DISK, SEQUENCES_PER_MESSAGE = 20, 4, 2
VERBOSE = bool(os.environ.get("RINGFENCE_TEST_FAULT_ENDINGS"))

Sequence = list[str]
"""Kinds of faults that happen in a row, before an undisturbed run and a check."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One form on one store, and how much happens to it until a time.

    `rare` says how often faults happen that are not drawn, each kind in a project of its own.
    """

    form: Form
    store: str
    servers: Servers
    seed: int
    rare: Mapping[str, int]
    full_disks: int
    until: float

    @property
    def name(self) -> str:
        """What names of its projects begin with."""
        return f"{self.store}-{self.form.name}-{self.seed}".replace(" ", "-")


def hurt(case: Case, ground: Ground, sequences: list[Sequence], tally: Tally) -> None:
    """Let sequences of faults happen, recover after each, and check."""
    for sequence in sequences:
        in_a_row: Sequence = []
        for kind in sequence:
            in_a_row.append(kind)
            if hurt_once(case, ground, kind, tally):
                if case.sibling is not None and case.sibling_hurt:
                    case.sibling.recover()  # the successor worked for its own project
                check(case, in_a_row, tally)
                in_a_row = []
        case.sibling_hurt |= sequence is sequences[-1]
        if in_a_row:
            case.grow(4)
            ended = case.recover()
            if ended.kind != "done":
                tally.note_violations("unfinished", [f"recovery {ended.text}"], in_a_row)
            check(case, in_a_row, tally)


def hurt_once(case: Case, ground: Ground, kind: str, tally: Tally) -> bool:
    """Let one fault happen; return whether a whole undisturbed run came after it already."""
    case.grow(case.chance.randint(6, 12))
    case.reveal()
    for _ in range(5):  # a place that this run doesn't pass is no fault: try another
        began = time.monotonic()
        done = KINDS[kind](case, ground)
        if VERBOSE:
            text = f"{kind} {time.monotonic() - began:.1f} s {done.outcome}"
            print(text, file=sys.stderr, flush=True)
        note(kind, done, tally)
        if not done.settled:
            case.time_passes()
        remember(case, kind, tally)
        if done.happened:
            return done.settled
        case.grow(4)
    return False


def note(kind: str, done: Hurt, tally: Tally) -> None:
    """Count a fault and how the hurt run ended."""
    if done.happened:
        tally.faults[kind] += 1
        tally.finished[kind] += done.outcome.kind == "done"
        tally.endings[f"{kind}: {done.outcome.kind} {done.outcome.text[:150]}"] += 1


def remember(case: Case, kind: str, tally: Tally) -> None:
    """Note the predictions that came since the last time, as those after a fault of `kind`."""
    before = len(case.first_seen)
    checker.remember(case)
    tally.predictions[kind] += len(case.first_seen) - before


def check(case: Case, in_a_row: Sequence, tally: Tally) -> None:
    """Check a recovered case."""
    tally.checks += 1
    before = len(case.first_seen)
    for kind, texts in checker.check(case).items():
        tally.note_violations(kind, texts, in_a_row)
    tally.predictions[in_a_row[-1]] += len(case.first_seen) - before
    case.sibling_hurt = False


def run_control(lane: Lane, ground: Ground, control: Control) -> Counter[str]:
    """Take a protection away, let its fault happen, recover as well as it goes, and check."""
    name = f"without-{control.without}-{control.deed}-{lane.name}"
    tally, settled = Tally(lane.form.name, f"without {control.without}"), False
    with open_case(lane.servers, lane.form, name, lane.seed) as case:
        if control.without == "create_without_key":
            case.graph.run("DROP CONSTRAINT ringfence_evaluated IF EXISTS")
        start(case.task("line")).outcome()
        checker.remember(case)
        case.grow(12)
        case.reveal()
        if control.deed == "kill":
            clock = kinds.DAY if control.without == "own_clock" else 0.0
            kinds.kill_at_a_place(case, ground, control.place, without=control.without, clock=clock)
            checker.remember(case)
        elif control.deed == "freeze":
            kinds.freeze(case, ground, control.place, control.without)
        elif control.deed == "backup":
            kinds.older_backup(case, ground, control.without)
        else:
            settled = CHANGES[control.deed](case, ground, control.without).settled
        if control.without == "own_clock":
            time.sleep(LEASE_SECONDS)
            start(case.task("line", without=control.without)).outcome()
        elif control.deed != "freeze" and not settled:
            case.grow(4)
            case.recover(control.without)
        check(case, [control.deed], tally)
        if control.without == "create_without_key":
            case.graph.run(f"MATCH (n:{case.label}) DETACH DELETE n")
            case.graph.run(
                "CREATE CONSTRAINT ringfence_evaluated IF NOT EXISTS "
                "FOR ()-[e:EVALUATED]-() REQUIRE e.key IS UNIQUE"
            )
    return +tally.violations


def run_lane(lane: Lane, ground: Ground, sequences: list[Sequence]) -> Tally:
    """Let the rare faults and the drawn ones happen to one form on one store."""
    tally, chance = Tally(lane.form.name, lane.store), random.Random(lane.seed)
    for kind, count in lane.rare.items():
        if count:
            name = f"{lane.name}-{kind}".replace("_", "-")
            with open_case(lane.servers, lane.form, name, lane.seed) as case:
                hurt(case, ground, repeat_fault(kind, count, chance), tally)
    if lane.full_disks:
        with tmpfs(lane.servers.folder / "small") as folder:
            name = f"{lane.name}-disk"
            with open_case(lane.servers, lane.form, name, lane.seed, folder) as case:
                hurt(case, ground, repeat_fault("disk_full", lane.full_disks, chance), tally)
    for number, part in enumerate(split_into_cases(sequences), 1):
        if time.monotonic() < lane.until:
            seed = lane.seed * 1000 + number
            with open_case(lane.servers, lane.form, f"{lane.name}-{number}", seed) as case:
                hurt(case, ground, part, tally)
        seen = f"{tally.faults.total()} faults, {tally.violations.total()} violations"
        print(f"  {lane.form.name}, {lane.store}: {seen}", file=sys.stderr, flush=True)
    return tally


def draw_sequences(store: str, count: int, seed: int, only: list[str]) -> list[Sequence]:
    """Draw sequences of faults that can happen on a store, by their shares."""
    shares = {k: n for k, n in SHARES.items() if ONLY_ON.get(k, store) == store and k in only}
    chance = random.Random(seed)
    return [
        chance.choices(
            list(shares), list(shares.values()), k=chance.randint(1, MAX_FAULTS_IN_A_ROW)
        )
        for _ in range(count if shares else 0)
    ]


def repeat_fault(kind: str, count: int, chance: random.Random) -> list[Sequence]:
    """Return sequences of one kind of fault, `count` faults in all."""
    sequences: list[Sequence] = []
    while count:
        length = min(count, chance.randint(1, MAX_FAULTS_IN_A_ROW))
        sequences.append([kind] * length)
        count -= length
    return sequences


def split_into_cases(sequences: list[Sequence]) -> list[list[Sequence]]:
    """Return the sequences of each project, with some `FAULTS_PER_CASE` faults."""
    cases: list[list[Sequence]] = [[]]
    for sequence in sequences:
        if sum(map(len, cases[-1])) >= FAULTS_PER_CASE:
            cases.append([])
        cases[-1].append(sequence)
    return [part for part in cases if part]


def read_options() -> argparse.Namespace:
    """Return the options of the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--sequences", type=int, default=120,
        help="of one to eight faults, then a check; for each form and store",
    )  # fmt: skip
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--forms", nargs="+", choices=list(FORMS), default=list(FORMS))
    options.add_argument("--stores", nargs="+", default=["sqlite", "postgresql"])
    options.add_argument("--restarts", type=int, help="of each server; one for every 20 sequences")
    options.add_argument(
        "--messages",
        type=int,
        help="at which the connection is cut, from the first on; one for every 2 sequences",
    )
    options.add_argument("--outage", type=float, default=60.0, help="seconds, of the first restart")
    options.add_argument("--full-disks", type=int, help="one for every 4 sequences")
    names = list(dict.fromkeys(control.without for control in CONTROLS))
    options.add_argument("--controls", nargs="*", choices=names, default=names)
    options.add_argument("--minutes", type=float, default=1e9, help="begin no case after them")
    options.add_argument("--only", nargs="+", default=list(SHARES), help="kinds of faults")
    options.add_argument("--json", type=Path, help="a file for the report, besides the tables")
    return options.parse_args()


def main() -> int:
    """Run faults on all forms and stores; exit 1 unless all is as it must be."""
    given = read_options()
    os.environ["OMP_NUM_THREADS"] = "1"  # forks and thread pools don't mix
    folder = Path(tempfile.mkdtemp(prefix="ringfence-faults-"))
    try:
        with ExitStack() as stack:
            report = run_all(given, folder, stack)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(report.as_json())
    report.print()
    if VERBOSE:
        for tally in report.tallies:
            for line, count in tally.endings.most_common():
                print(f"{tally.form} {tally.store} {count} x {line}")
    return report.exit_code


def run_all(given: argparse.Namespace, folder: Path, stack: ExitStack) -> Report:
    """Run each form on each store, then the controls of each form on SQLite."""
    uri, auth, restart = stack.enter_context(neo4j(folder, given.outage))
    ground = Ground(Proxy(make_url(uri).port or 7687), restart, Window())
    restarts = count_rare(given.restarts, given.sequences, SEQUENCES_PER_RESTART)
    messages = count_rare(given.messages, given.sequences, SEQUENCES_PER_MESSAGE)
    full_disks = count_rare(given.full_disks, given.sequences, SEQUENCES_PER_FULL_DISK)
    mountable = bool(full_disks) and can_mount(folder)
    if full_disks and not mountable:
        print("disk full: left out, mounting a tmpfs needs root", file=sys.stderr)
    tallies, controls = [], []
    for store in given.stores:
        sql, restart_sql = "", None
        if store == "postgresql":
            sql, restart_sql = stack.enter_context(postgres(given.seed))
        rare = {
            "neo4j_killed": restarts if restart else 0,
            "postgresql_killed": restarts if restart_sql else 0,
            "cut_at_each_message": messages,
        }
        for name in given.forms:
            ground = replace(ground, restart_sql=restart_sql, messages=MessageCount())
            lane = Lane(
                FORMS[name],
                store,
                Servers(uri, auth, sql, folder / store / name),
                given.seed,
                rare,
                full_disks if store == "sqlite" and mountable else 0,
                time.monotonic() + 60 * given.minutes,
            )
            sequences = draw_sequences(store, given.sequences, given.seed, given.only)
            tallies.append(run_lane(lane, ground, sequences))
    for name in given.forms:
        servers = Servers(uri, auth, "", folder / "controls" / name)
        lane = Lane(FORMS[name], "sqlite", servers, given.seed, {}, 0, 0.0)
        controls += [
            ControlResult(lane.form.name, control.name, dict(run_control(lane, ground, control)))
            for control in CONTROLS
            if control.without in given.controls
        ]
    return Report(tallies, controls)


def count_rare(given: int | None, sequences: int, sequences_per_fault: int) -> int:
    """Return how often a rare fault happens: as often as asked for, else by the sequences."""
    return -(-sequences // sequences_per_fault) if given is None else given


if __name__ == "__main__":
    sys.exit(main())
