"""The kinds of faults: each hurts one run of a case, and tells whether it really happened."""

import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import text

from ringfence.connector import fault_points
from tests.faults.case import LEASE_SECONDS, Case
from tests.faults.proxy import Cut, Proxy, some_cut
from tests.faults.worker import Attempt, Outcome, start

AUDIT_PLACES = ("labels read", "before coverage", "coverage in sql", "coverage in graph")
SCORE_PLACES = tuple(name for name in fault_points.NAMES if name not in AUDIT_PLACES)
BLOCK_PLACES = ("block in sql", "before block", "inside block", "after block")
DAY = 86_400.0


@dataclass(slots=True)
class Window:
    """How long a run takes here, learnt from kills that came too late."""

    seconds: float = 1.0

    def learn(self, in_time: bool) -> None:
        """Aim earlier after a miss, later after a hit."""
        self.seconds = max(0.1, self.seconds * (1.2 if in_time else 0.7))


@dataclass(slots=True)
class MessageCount:
    """The message of a run at which the connection was cut last."""

    nth: int = 0


@dataclass(frozen=True, slots=True)
class Ground:
    """What a fault may use besides the case: the proxy, and ways to restart the servers.

    `restart` calls what it is given when Neo4j is dead, and returns when it is back; `restart_sql`
    kills PostgreSQL and starts it again. Each is None where the server is not our own.
    """

    proxy: Proxy
    restart: Callable[[Callable[[], None]], None] | None
    window: Window
    restart_sql: Callable[[], None] | None = None
    messages: MessageCount = field(default_factory=MessageCount)


@dataclass(frozen=True, slots=True)
class Hurt:
    """A fault that was tried: whether it happened, and how the hurt run ended.

    `settled` says that a whole undisturbed run came after it already (a successor's).
    """

    happened: bool
    outcome: Outcome
    settled: bool = False


def kill_at_a_place(case: Case, _ground: Ground, place: str = "", **more: object) -> Hurt:
    """SIGKILL at a named place of the run."""
    place = place or case.chance.choice(fault_points.NAMES)
    nth = case.chance.randint(1, 2) if place in BLOCK_PLACES else 1
    outcome = start(
        case.task(_action(place, case.chance), deed="kill", place=place, nth=nth, **more)
    ).outcome()
    return Hurt(outcome.kind == "killed", outcome)


def kill_at_a_time(case: Case, ground: Ground) -> Hurt:
    """SIGKILL at a random moment."""
    attempt = start(case.task(case.chance.choice(("score", "score", "audit", "line"))))
    attempt.ended(case.chance.uniform(0.02, ground.window.seconds))
    attempt.signal(signal.SIGKILL)
    outcome = attempt.outcome()
    ground.window.learn(outcome.kind == "killed")
    return Hurt(outcome.kind == "killed", outcome)


def clock_jump(case: Case, ground: Ground) -> Hurt:
    """The worker's clock is a day off, and it is killed at a place."""
    return kill_at_a_place(case, ground, clock=case.chance.choice((-DAY, DAY)))


def freeze(case: Case, _ground: Ground, place: str = "", without: str = "") -> Hurt:
    """SIGSTOP past the lease; a successor does all the work; SIGCONT."""
    place = place or case.chance.choice(fault_points.NAMES)
    attempt = start(
        case.task(_action(place, case.chance), deed="freeze", place=place, without=without)
    )
    if not attempt.reached():
        return Hurt(False, attempt.outcome())
    time.sleep(LEASE_SECONDS + 0.2)
    case.grow(3)
    case.reveal()
    successor = start(case.task("line", without=without))
    in_time = successor.ended(4 * LEASE_SECONDS)
    attempt.signal(signal.SIGCONT)
    outcome = attempt.outcome()
    return Hurt(True, outcome, (in_time and successor.outcome().kind == "done") or _done(successor))


def _done(successor: Attempt) -> bool:
    successor.outcome()
    return False  # it had to wait for the frozen one: a later run settles


def cut_before_commit(case: Case, ground: Ground) -> Hurt:
    """The connection is cut before a COMMIT reaches the server."""
    return _cut(case, ground, "before")


def cut_after_commit(case: Case, ground: Ground) -> Hurt:
    """The connection is cut after the server has committed, before anyone hears of it."""
    return _cut(case, ground, "after")


def cut_anywhere(case: Case, ground: Ground) -> Hurt:
    """The connection is cut at some message."""
    return _cut(case, ground, "portion")


def cut_at_each_message(case: Case, ground: Ground) -> Hurt:
    """The connection is cut at the message after that of the last such fault, from the first on."""
    ground.messages.nth += 1
    done = _cut_at(case, ground, Cut("portion", ground.messages.nth), "line")
    if not done.happened:  # the run has no more messages: the next cut is at its first again
        ground.messages.nth = 0
    return done


def _cut(case: Case, ground: Ground, kind: str) -> Hurt:
    cut = some_cut(kind, case.chance)
    return _cut_at(case, ground, cut, case.chance.choice(("score", "line")))


def _cut_at(case: Case, ground: Ground, cut: Cut, action: str) -> Hurt:
    ground.proxy.arm(cut)
    uri = {"RINGFENCE_NEO4J_URI": f"bolt://127.0.0.1:{ground.proxy.port}"}
    outcome = start(case.task(action, environment=uri)).outcome()
    happened = ground.proxy.cuts > 0
    ground.proxy.arm(None)
    return Hurt(happened, outcome)


def sql_backend_killed(case: Case, _ground: Ground) -> Hurt:
    """PostgreSQL ends the worker's session at a place."""
    place = case.chance.choice(fault_points.NAMES)
    attempt = start(case.task(_action(place, case.chance), deed="wait", place=place))
    happened = attempt.reached()
    if happened:
        with case.store.transaction() as connection:
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            )
        case.store.close()  # connections that the harness itself had in its pool are ended too
        attempt.go_on()
    return Hurt(happened, attempt.outcome())


def postgresql_killed(case: Case, ground: Ground) -> Hurt:
    """kill -9 of PostgreSQL with all its processes at a place; it is back when the run goes on."""
    place = case.chance.choice(fault_points.NAMES)
    attempt = start(case.task(_action(place, case.chance), deed="wait", place=place))
    happened = attempt.reached()
    if happened and ground.restart_sql:
        case.store.close()
        ground.restart_sql()
        attempt.go_on()
    return Hurt(happened, attempt.outcome())


def damaged_mirror(case: Case, _ground: Ground) -> Hurt:
    """The mirror is missing, torn, or older than the store."""
    mirror = case.workspace.mirror
    files = sorted(path for path in mirror.rglob("*") if path.is_file())
    if not files:
        return Hurt(False, Outcome("done"))
    how = case.chance.choice(("missing", "torn", "older"))
    older = mirror.with_name("older")
    shutil.copytree(mirror, older)
    file = case.chance.choice(files)
    if how == "missing":
        file.unlink()
    elif how == "torn":
        file.write_bytes(file.read_bytes()[: case.chance.randrange(file.stat().st_size + 1)])
    outcome = start(case.task("score")).outcome()
    if how == "older":
        shutil.rmtree(mirror)
        older.rename(mirror)
        case.grow(2)
        outcome = start(case.task("score")).outcome()
    shutil.rmtree(older, ignore_errors=True)
    return Hurt(True, outcome)


def older_backup(case: Case, _ground: Ground, without: str = "") -> Hurt:
    """SQLite is restored from before a run; it must be refused until the newest comes back."""
    file = Path(case.settings.audit.url.removeprefix("sqlite:///"))
    backup, newest = file.with_suffix(".backup"), file.with_suffix(".newest")
    case.store.close()
    _copy(file, backup)
    hurt = start(case.task("score")).outcome()
    if hurt.kind != "done":
        return Hurt(False, hurt)
    _copy(file, newest)
    _copy(backup, file)
    case.grow(5)
    outcome = start(case.task("score", without=without)).outcome()
    if not without:
        case.store.close()
        _copy(newest, file)
    case.store.close()
    return Hurt(outcome.kind == "refused" or bool(without), outcome)


def _copy(source: Path, target: Path) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{target}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(source, target)  # the last connection is closed: the WAL is in the file


def neo4j_killed(case: Case, ground: Ground) -> Hurt:
    """kill -9 of the Neo4j server at a place; the run goes on without it until it is back."""
    place = case.chance.choice(SCORE_PLACES[:-1])
    attempt = start(case.task("score", deed="wait", place=place))
    happened = attempt.reached()
    if happened and ground.restart:
        ground.restart(attempt.go_on)
    return Hurt(happened, attempt.outcome())


def disk_full(case: Case, _ground: Ground) -> Hurt:
    """The disk of store, mirror and key is full, or nearly, from the start or from some place."""
    place = case.chance.choice(("", *SCORE_PLACES[:-1]))
    attempt = start(case.task("line", deed="wait", place=place))
    if place and not attempt.reached():
        return Hurt(False, attempt.outcome())
    filler = case.config.parent / "filler"
    left = case.chance.choice((0, 0, 4, 16, 40, 64)) * 1024
    with suppress(OSError):  # the run may have written meanwhile: then the disk is full before
        filler.write_bytes(b"\0" * max(0, shutil.disk_usage(filler.parent).free - left - 4096))
    if place:
        attempt.go_on()
    outcome = attempt.outcome()
    filler.unlink()
    return Hurt(outcome.kind != "done", outcome)


def _action(place: str, chance: random.Random) -> str:
    if place in AUDIT_PLACES:
        return chance.choice(("audit", "line"))
    return chance.choice(("score", "line"))


KINDS: dict[str, Callable[[Case, Ground], Hurt]] = {
    fault.__name__: fault
    for fault in (
        kill_at_a_place, kill_at_a_time, clock_jump, freeze, cut_before_commit, cut_after_commit,
        cut_anywhere, cut_at_each_message, sql_backend_killed, postgresql_killed, damaged_mirror,
        older_backup, neo4j_killed, disk_full,
    )
}  # fmt: skip
