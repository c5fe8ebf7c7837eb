"""Faults that are no process's doing: the graph, the folder or the configuration changes under it.

Deletions are masked by arrivals, so that no count gives them away. Each change comes before a run,
or while one works.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import select

from ringfence.connector import fault_points
from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.store import tables
from ringfence.connector.store.lifecycle.activations import active_version
from ringfence.connector.store.models import class_names
from ringfence.jobs.inference.cache_state import read_state
from tests.faults import checker
from tests.faults.case import CLASSES, WIDTH, Case, open_sibling
from tests.faults.kinds import SCORE_PLACES, Ground, Hurt
from tests.faults.worker import PATIENCE, Outcome, start

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
MIN_CALIBRATION = 8  # so many must stay
MAX_VERSIONS, NEW_VERSION, AT_A_PLACE, IN_THE_SHADOW = 5, 0.4, 0.6, 0.3
ROUNDS_WITHOUT_LEASE = 3
RUNS_UNTIL_NODES_JOIN = 6
DELETE_PAYMENTS = "MATCH (n:{label})-[r:PAID]->() WHERE n.id IN $ids DELETE r"
MOVE_USES = """
UNWIND $moves AS move
MATCH (old:{label} {{id: move[0]}})-[r:USED]->()
WITH move, r LIMIT $count
DELETE r
WITH move
MATCH (new:{label} {{id: move[1]}}), (shop:{label}Shop {{id: move[2]}})
CREATE (new)-[:USED]->(shop)
"""
DELETE_NODES = "MATCH (n:{label}) WHERE n.id IN $ids DETACH DELETE n"
CHANGE_SHOPS = """
UNWIND $rows AS row
MATCH (shop:{label}Shop {{id: row[0]}})-[:IN]->(town)
SET shop.size = row[1], town.people = 100 * row[1]
"""


def relationships_deleted(case: Case, _ground: Ground, without: str = "") -> Hurt:
    """Relationships are deleted while as many or more arrive.

    Of those to shops, which have no creation times, as many are set between nodes that were read.
    """

    def change() -> None:
        some = case.some_nodes(case.chance.randint(1, 6))
        case.graph.run(DELETE_PAYMENTS.format(label=case.label), ids=some)
        others, shops = case.some_nodes(len(some)), case.some_shops(len(some))
        moves = [list(move) for move in zip(some, others, shops, strict=False)]
        case.graph.run(MOVE_USES.format(label=case.label), moves=moves, count=len(moves))
        case.grow(len(some))

    return _changed(case, change, without)


def nodes_deleted(case: Case, _ground: Ground, without: str = "") -> Hurt:
    """Nodes are deleted while as many arrive, with an old creation time; shops go too."""

    def change() -> None:
        some = case.some_nodes(case.chance.randint(1, 3), due=True)
        case.graph.run(DELETE_NODES.format(label=case.label), ids=some)
        case.gone.update(some)
        shops = case.some_shops(case.chance.randint(0, 2))
        case.graph.run(DELETE_NODES.format(label=f"{case.label}Shop"), ids=shops)
        case.shops.difference_update(shops)
        case.grow(len(some), created=LONG_AGO)

    return _changed(case, change, without)


def features_changed(case: Case, _ground: Ground, without: str = "") -> Hurt:
    """Features of some nodes change, calibration nodes among them, and columns of the context."""

    def change() -> None:
        some = {*case.some_nodes(3), *_calibration(case)[:3]}
        rows = [[key, [case.chance.gauss(0, 2) for _ in range(WIDTH)]] for key in sorted(some)]
        case.graph.run(
            f"UNWIND $rows AS row MATCH (n:{case.label} {{id: row[0]}}) SET n.features = row[1]",
            rows=rows,
        )
        shops = [[key, case.chance.gauss(0, 2)] for key in case.some_shops(2)]
        case.graph.run(CHANGE_SHOPS.format(label=case.label), rows=shops)

    return _changed(case, change, without)


def classes_changed(case: Case, _ground: Ground, without: str = "") -> Hurt:
    """Classes of calibration nodes are corrected, withdrawn, or put back."""

    def change() -> None:
        some = _calibration(case)
        picked = case.chance.sample(some, min(3, len(some)))
        kinds = (*CLASSES, *CLASSES, None)
        case.change_classes({key: case.chance.choice(kinds) for key in picked})

    return _changed(case, change, without)


def calibration_removed(case: Case, _ground: Ground, without: str = "") -> Hurt:
    """A calibration node is deleted while another comes; or the other one takes its key.

    A key whose node was evaluated is not used again: that happens where a version was trained while
    the node's class was withdrawn, and the journal tells no two nodes of one key apart.
    """
    left = _calibration(case)
    if len(left) <= MIN_CALIBRATION:
        return Hurt(False, Outcome("done"))

    def change() -> None:
        key = case.chance.choice(left)
        case.graph.run(f"MATCH (n:{case.label} {{id: $id}}) DETACH DELETE n", id=key)
        case.replaced.add(key)
        again = case.chance.random() < 0.5 and not _was_evaluated(case, key)
        if again or without == "no_creation_times":
            case.add([key])
        else:
            case.gone.add(key)
            case.grow(1, created=LONG_AGO)

    return _changed(case, change, without)


def damaged_tables(case: Case, _ground: Ground, without: str = "") -> Hurt:
    """What the last forward pass kept is missing, torn, or has other bits when a run reads it.

    A run comes first that nobody hurts: a worker that died leaves tables which are not used again.
    Few nodes come after it, for of a graph that changed much everything is computed anew. The files
    have room for more nodes: bits are changed where rows are filled.
    """
    case.time_passes()
    start(case.task("score", without=without)).outcome()
    case.grow(1)
    kept = sorted(case.workspace.tables.rglob("*"))
    files = [path for path in kept if path.is_file() and path.stat().st_size]
    state = read_state(files[0].parent) if files else {}
    if not state or state["open"]:
        return Hurt(False, Outcome("done"))
    how = case.chance.choice(("missing", "torn", "bits", "bits")) if not without else "bits"
    float_arrays = [name for name, array in state["arrays"].items() if array["kind"] == "<f4"]
    for file in files if how == "bits" else [case.chance.choice(files)]:
        raw = bytearray(file.read_bytes())
        if how == "missing":
            file.unlink()
        elif how == "torn":
            file.write_bytes(raw[: case.chance.randrange(len(raw))])
        elif file.name in float_arrays:
            filled = 4 * math.prod(state["arrays"][file.name]["shape"])
            for place in range(3, filled, 4):  # the last byte of a float32: sign and exponent
                raw[place] ^= 1
            file.write_bytes(raw)
    ended = start(case.task("line", without=without)).outcome()
    return Hurt(True, ended, settled=ended.kind == "done")


def two_projects(case: Case, _ground: Ground, without: str = "") -> Hurt:
    """Another project with the same mapping, in the same folder, is killed at a place."""
    if case.sibling is None:
        case.sibling = open_sibling(case)
    case.sibling_hurt = True
    case.grow(3)
    if without:
        start(case.task("line", without=without)).outcome()
        return Hurt(True, start(case.sibling.task("line", without=without)).outcome())
    place = case.chance.choice(fault_points.NAMES)
    outcome = start(case.sibling.task("line", deed="kill", place=place)).outcome()
    case.sibling.time_passes()
    return Hurt(outcome.kind == "killed", outcome)


def schedule_reconfigured(case: Case, _ground: Ground, without: str = "") -> Hurt:
    """A scheduler is at work, its configuration changes, another one starts with the new one."""
    old, place = case.config.read_text(), case.chance.choice(SCORE_PLACES[:-1])
    texts = case.form.reconfigured
    was = case.chance.choice(list(texts)) if not without else case.form.other_inputs
    case.time_passes()
    first = start(case.task("schedule", deed="wait", place=place))
    happened = first.reached()
    case.config.write_text(old.replace(was, texts[was]))
    second = start(case.task("schedule", without=without))
    if happened:
        first.go_on()
    first.outcome()
    second.outcome()
    case.time_passes()
    case.grow(2)
    outcome = start(case.task("schedule", without=without)).outcome()
    case.config.write_text(old)
    return Hurt(happened or bool(without), outcome, settled=bool(without))


def promotion(case: Case, _ground: Ground, without: str = "") -> Hurt:
    """A version is promoted or taken back: killed at a place, or beside a scheduler that scores;
    or a run is killed while a candidate scores in its shadow.
    """
    case.time_passes()
    versions = len(class_names(case.store, case.name))
    if versions < MAX_VERSIONS and (versions == 1 or case.chance.random() < NEW_VERSION):
        start(case.task("train")).outcome()
        case.time_passes()
    if without == "learnt_nodes":
        return _score_after_promotion(case, without)
    if not without and case.chance.random() < IN_THE_SHADOW:
        place = case.chance.choice(fault_points.SHADOW_NAMES)
        outcome = start(case.task("line", deed="kill", place=place)).outcome()
        return Hurt(outcome.kind == "killed", outcome)
    if without:  # several times: one promotion that comes late would leave the control thin
        for _ in range(ROUNDS_WITHOUT_LEASE):
            # later than the snapshot in which a run compares the version in use
            done = _beside_a_schedule(case, "promote", "before decide", without)
            checker.remember(case)
            case.grow(6)
            case.time_passes()
        return done
    action = case.chance.choice(("promote", "promote", "rollback"))
    if case.chance.random() < AT_A_PLACE:
        place = case.chance.choice(fault_points.PROMOTION_NAMES)
        outcome = start(case.task(action, deed="kill", place=place)).outcome()
        return Hurt(outcome.kind == "killed", outcome)
    return _beside_a_schedule(case, action, case.chance.choice(SCORE_PLACES[:-1]))


def _beside_a_schedule(case: Case, action: str, place: str, without: str = "") -> Hurt:
    """Change the version while a scheduler's run is at a place; then let the run go on."""
    first = start(case.task("schedule", deed="wait", place=place))
    happened = first.reached()
    second = start(case.task(action, without=without))
    # it waits for the one at work; without the lease it does not, and comes to its end
    second.ended(PATIENCE if without else 1.0)
    if happened:
        first.go_on()
    first.outcome()
    return Hurt(happened, second.outcome())


def _score_after_promotion(case: Case, without: str) -> Hurt:
    """Classes become known under one version, another learns from them, and runs use it."""
    for _ in range(RUNS_UNTIL_NODES_JOIN):
        case.grow(4)
        start(case.task("line")).outcome()
        checker.remember(case)
        case.reveal(0.8)
        case.time_passes()
    for action in ("train", "promote", "line"):
        case.grow(2)
        outcome = start(case.task(action, without=without)).outcome()
        case.time_passes()
    return Hurt(True, outcome)


def _changed(case: Case, change: Callable[[], None], without: str) -> Hurt:
    """Let a change happen before a run, or at some place of it."""
    place = "" if without else case.chance.choice(("", *SCORE_PLACES[:-1]))
    if not place:
        change()
        return Hurt(True, start(case.task("line", without=without)).outcome())
    attempt = start(case.task("line", deed="wait", place=place))
    happened = attempt.reached()
    if happened:
        change()
        attempt.go_on()
    return Hurt(happened, attempt.outcome())


def _calibration(case: Case) -> list[int]:
    """The calibration nodes that are still themselves, in an order by chance."""
    of = tables.member.c
    with case.store.reading() as connection:
        query = select(of.node_key).where(
            of.project == case.name,
            of.role == "calibration",
            of.version == active_version(connection, case.name),
        )
        keys = [decode_key(key) for key in connection.execute(query).scalars()]
    left = sorted(key for key in keys if key not in case.gone and key not in case.replaced)
    case.chance.shuffle(left)
    return left


def _was_evaluated(case: Case, key: int) -> bool:
    """Whether a node of this key was or will be evaluated."""
    of = tables.prediction.c
    with case.store.reading() as connection:
        query = select(of.seq).where(of.project == case.name, of.node_key == encode_key(key))
        return key in case.due or connection.execute(query).first() is not None


CHANGES: dict[str, Callable[..., Hurt]] = {
    change.__name__: change
    for change in (
        relationships_deleted, nodes_deleted, features_changed, classes_changed,
        calibration_removed, damaged_tables, two_projects, schedule_reconfigured, promotion,
    )
}  # fmt: skip
