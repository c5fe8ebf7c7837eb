"""Hurt real runs many times and count what was lost: `python -m tests.faults.run --help`."""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import make_url

from tests.faults import checker, kinds
from tests.faults.breaks import CONTROLS, Control
from tests.faults.case import LEASE_SECONDS, Case, Servers, open_case
from tests.faults.changes import CHANGES
from tests.faults.kinds import Ground, Hurt, Window
from tests.faults.proxy import Proxy
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
KINDS = {**kinds.KINDS, **CHANGES}
PER_CASE = 40
MAX_FAULTS_IN_A_ROW = 8
VERBOSE = bool(os.environ.get("RINGFENCE_TEST_FAULT_ENDINGS"))


@dataclass(slots=True)
class Tally:
    """What happened in one lane: faults and unaided survivals by kind, documents, violations."""

    faults: Counter[str] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    documents: int = 0
    checks: int = 0

    def note(self, kind: str, hurt: Hurt) -> None:
        """Count a fault and how the hurt run ended."""
        if hurt.happened:
            self.faults[kind] += 1
            self.finished[kind] += hurt.outcome.kind == "done"
            self.endings[f"{kind}: {hurt.outcome.kind} {hurt.outcome.text[:150]}"] += 1

    def judge(self, case: Case, how: str) -> None:
        """Check a recovered case."""
        self.checks += 1
        for kind, found in checker.check(case).items():
            self.violations[kind] += len(found)
            for one in found[:3]:
                self.say(f"{case.name} after {how}: {kind}: {one}")

    def say(self, text: str) -> None:
        """Keep an example of a violation, and show it at once."""
        self.examples.append(text)
        print(text, file=sys.stderr, flush=True)


def hurt(case: Case, ground: Ground, wanted: list[str], tally: Tally) -> None:
    """Let faults happen in groups, recover after each group, and check."""
    while wanted:
        group: list[str] = []
        settled = False
        for _ in range(case.chance.randint(1, MAX_FAULTS_IN_A_ROW)):
            if wanted and not settled:
                kind = wanted.pop()
                settled = _one(case, ground, kind, tally)
                group.append(kind)
        case.sibling_hurt |= not wanted
        if not settled:
            case.grow(4)
            ended = case.recover()
            if ended.kind != "done":
                tally.violations["unfinished"] += 1
                tally.say(f"{case.name} after {group}: recovery {ended.text}")
        if settled and case.sibling is not None and case.sibling_hurt:
            case.sibling.recover()  # the successor worked for its own project
        tally.judge(case, " + ".join(group))
        case.sibling_hurt = False
    tally.documents += len(case.first_seen)


def _one(case: Case, ground: Ground, kind: str, tally: Tally) -> bool:
    case.grow(case.chance.randint(6, 12))
    case.reveal()
    for _ in range(5):  # a place that this run doesn't pass is no fault: try another
        began = time.monotonic()
        done = KINDS[kind](case, ground)
        if VERBOSE:
            text = f"{kind} {time.monotonic() - began:.1f} s {done.outcome}"
            print(text, file=sys.stderr, flush=True)
        tally.note(kind, done)
        if not done.settled:
            case.time_passes()
        checker.remember(case)
        if done.happened:
            return done.settled
        case.grow(4)
    return False


def control(servers: Servers, ground: Ground, one: Control, seed: int) -> Counter[str]:
    """Take a protection away, let its fault happen, recover as well as it goes, and check."""
    with open_case(servers, f"without-{one.without}-{one.deed}-{seed}", seed) as case:
        if one.without == "create_without_key":
            case.graph.run("DROP CONSTRAINT ringfence_evaluated IF EXISTS")
        start(case.task("line")).outcome()
        checker.remember(case)
        case.grow(12)
        case.reveal()
        tally, settled = Tally(), False
        if one.deed == "kill":
            clock = kinds.DAY if one.without == "own_clock" else 0.0
            kinds.kill_at_a_place(case, ground, one.place, without=one.without, clock=clock)
            checker.remember(case)
        elif one.deed == "freeze":
            kinds.freeze(case, ground, one.place, one.without)
        elif one.deed == "backup":
            kinds.older_backup(case, ground, one.without)
        else:
            settled = CHANGES[one.deed](case, ground, one.without).settled
        if one.without == "own_clock":
            time.sleep(LEASE_SECONDS)
            start(case.task("line", without=one.without)).outcome()
        elif one.deed != "freeze" and not settled:
            case.grow(4)
            case.recover(one.without)
        tally.judge(case, one.without)
        if one.without == "create_without_key":
            case.graph.run(f"MATCH (n:{case.label}) DETACH DELETE n")
            case.graph.run(
                "CREATE CONSTRAINT ringfence_evaluated IF NOT EXISTS "
                "FOR ()-[e:EVALUATED]-() REQUIRE e.key IS UNIQUE"
            )
        return +tally.violations


def lane(
    servers: Servers,
    ground: Ground,
    store: str,
    wanted: list[str],
    seed: int,
    rare: dict[str, int],
    until: float,
) -> Tally:
    """Let the rare faults and the wanted ones happen on one kind of SQL store, until a time."""
    tally = Tally()
    if rare.get("neo4j_killed"):
        with open_case(servers, f"{store}-{seed}-server", seed) as case:
            hurt(case, ground, ["neo4j_killed"] * rare["neo4j_killed"], tally)
    if rare.get("disk_full"):
        with tmpfs(servers.folder / "small") as folder:
            name = f"{store}-{seed}-disk"
            with open_case(servers, name, seed, folder) as case:
                hurt(case, ground, ["disk_full"] * rare["disk_full"], tally)
    number = 0
    while wanted and time.monotonic() < until:
        part, wanted = wanted[:PER_CASE], wanted[PER_CASE:]
        number += 1
        with open_case(servers, f"{store}-{seed}-{number}", seed * 1000 + number) as case:
            hurt(case, ground, part, tally)
        seen = f"{tally.faults.total()} faults, {tally.violations.total()} violations"
        print(f"  {store}: {seen}", file=sys.stderr, flush=True)
    return tally


def _wanted(store: str, faults: int, seed: int, only: list[str]) -> list[str]:
    allowed = {k: n for k, n in SHARES.items() if ONLY_ON.get(k, store) == store and k in only}
    return random.Random(seed).choices(list(allowed), list(allowed.values()), k=faults)


def main() -> int:
    """Run faults on both stores and the negative controls; exit 1 unless all is as it must be."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--faults", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--stores", nargs="+", default=["sqlite", "postgresql"])
    options.add_argument("--restarts", type=int, default=6, help="of the Neo4j server")
    options.add_argument("--outage", type=float, default=60.0, help="seconds, of the first restart")
    options.add_argument("--full-disks", type=int, default=30)
    options.add_argument("--controls", nargs="*", default=[one.without for one in CONTROLS])
    options.add_argument("--minutes", type=float, default=1e9, help="begin no case after them")
    options.add_argument("--only", nargs="+", default=list(SHARES), help="kinds of faults")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # forks and thread pools don't mix
    folder = Path(tempfile.mkdtemp(prefix="ringfence-faults-"))
    try:
        with ExitStack() as stack:
            return _all(given, folder, stack)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _all(given: argparse.Namespace, folder: Path, stack: ExitStack) -> int:
    uri, auth, restart = stack.enter_context(neo4j(folder, given.outage))
    ground = Ground(Proxy(make_url(uri).port or 7687), restart, Window())
    mountable = given.full_disks and can_mount(folder)
    tallies: dict[str, Tally] = {}
    for store in given.stores:
        sql = stack.enter_context(postgres(given.seed)) if store == "postgresql" else ""
        rare = {"neo4j_killed": given.restarts // len(given.stores) if restart else 0}
        rare["disk_full"] = given.full_disks if store == "sqlite" and mountable else 0
        share = -(-given.faults // len(given.stores))
        servers = Servers(uri, auth, sql, folder / store)
        wanted = _wanted(store, share - sum(rare.values()), given.seed, given.only)
        until = time.monotonic() + 60 * given.minutes
        tallies[store] = lane(servers, ground, store, wanted, given.seed, rare, until)
    servers = Servers(uri, auth, "", folder / "controls")
    controls = {
        one.name: control(servers, ground, one, given.seed)
        for one in CONTROLS
        if one.without in given.controls
    }
    if given.full_disks and not mountable:
        print("disk full: left out, mounting a tmpfs needs root", file=sys.stderr)
    return report(tallies, controls, as_json=given.json)


def report(tallies: dict[str, Tally], controls: dict[str, Counter[str]], *, as_json: bool) -> int:
    """Print the tables; 0 where no promise was broken and every control was seen."""
    broken = sum(tally.violations.total() for tally in tallies.values())
    blind = [name for name, seen in controls.items() if not seen.total()]
    if as_json:
        body = {
            "stores": {
                store: {
                    "faults": dict(tally.faults),
                    "documents": tally.documents,
                    "violations": dict(+tally.violations),
                    "examples": tally.examples,
                }
                for store, tally in tallies.items()
            },
            "controls": {name: dict(seen) for name, seen in controls.items()},
        }
        print(json.dumps(body))
        return int(bool(broken or blind))
    stores = list(tallies)
    print("\n| fault | " + " | ".join(stores) + " | finished unaided |")
    print("|---" * (len(stores) + 2) + "|")
    for kind in KINDS:
        counts = [tally.faults[kind] for tally in tallies.values()]
        unaided = sum(tally.finished[kind] for tally in tallies.values())
        print(f"| {kind.replace('_', ' ')} | " + " | ".join(map(str, counts)) + f" | {unaided} |")
    totals = [str(tally.faults.total()) for tally in tallies.values()]
    print("| **all faults** | " + " | ".join(totals) + " | |")
    rows = {"documents": [t.documents for t in tallies.values()]}
    rows["checks"] = [t.checks for t in tallies.values()]
    for kind in checker.KINDS:
        rows[f"violations: {kind}"] = [t.violations[kind] for t in tallies.values()]
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(map(str, values)) + " | |")
    print("\n| without this protection | violations seen |\n|---|---|")
    for name, seen in controls.items():
        text = ", ".join(f"{n} {kind}" for kind, n in seen.items()) or "NONE: the checker is blind"
        print(f"| {name.replace('_', ' ')} | {text} |")
    for tally in tallies.values():
        for line in tally.examples[:40]:
            print(line)
    if VERBOSE:
        for store, tally in tallies.items():
            for line, n in tally.endings.most_common():
                print(f"{store} {n} x {line}")
    return int(bool(broken or blind))


if __name__ == "__main__":
    sys.exit(main())
