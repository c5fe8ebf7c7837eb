"""Read both stores and the chain after recovery, and list what isn't as promised, by kind.

lost        a node that was due has no prediction, or its set never reached the graph
doubled     two EVALUATED, two equal MAY_BE, two nodes of one run, class or coverage row
different   the graph shows another set than SQL decided, or SQL another than it first decided
chain       the audit chain is broken, or doesn't cover what is stored
coverage    coverage rows don't follow from the predictions, or the graph shows others
mirror      the mirror on disk holds other nodes, times, features or relationships than the graph
calibration a calibration node counts with another class than the graph has, or shouldn't count
version     a run was decided by a version that was not in use, versions don't follow the chain, or
            shadow sets are not whole or not of their run's nodes
stale       the newest sets are not those of a clean reading of the graph
verify      `ringfence verify` finds a problem
unfinished  a run is still open after recovery, or recovery itself failed
"""

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, select

from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.records import Prediction
from ringfence.connector.store import chain, coverage, tables
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.predictions import payload_digest
from ringfence.jobs.auditing.audit import count_coverage
from ringfence.jobs.integrity import verify
from ringfence.jobs.integrity.checkpoint.compared_rows import Plan
from ringfence.jobs.integrity.graph_check import KINDS as KIND_WORDS
from tests.faults import clean_reading
from tests.faults.case import Case
from tests.faults.mirror_check import wrong_rows

KINDS = (
    "lost", "doubled", "different", "chain", "coverage", "mirror", "calibration", "version",
    "stale", "verify", "unfinished",
)  # fmt: skip

SETS = """
MATCH (n:{label})-[e:EVALUATED]->(r:RingfenceRun {{project: $project}})
OPTIONAL MATCH (n)-[m:MAY_BE]->(c:RingfenceClass {{project: $project}})
RETURN n.id AS id, elementId(e) AS e, r.seq AS seq, e.size AS size,
       collect([c.name, m.p]) AS sets
"""
RUNS = """
MATCH (r:RingfenceRun {project: $project})
RETURN r.seq AS seq, r.threshold AS threshold, r.alpha AS alpha, r.model AS model
"""
COVERAGES = """
MATCH (a:CoverageAudit {project: $project})-[:AUDITS]->(:RingfenceRun)
RETURN a.seq AS seq, a.slice AS slice, a.name AS name, a.evaluated AS evaluated, a.known AS known,
       a.covered AS covered, a.verdict AS verdict
"""
CLASSES = "MATCH (c:RingfenceClass {project: $project}) RETURN c.name AS name"
COUNTED = ("seq", "slice", "name", "evaluated", "known", "covered", "verdict")


def remember(case: Case) -> list[str]:
    """Note every payload the first time it is seen; return those that have changed since."""
    changed = []
    for row in _rows(case, tables.prediction):
        payload = (row.seq, row.size, row.classes, row.p_values, row.scores, row.degree)
        if case.first_seen.setdefault(row.node_key, payload) != payload:
            changed.append(f"the payload of {row.node_key} in SQL changed")
    gone = case.first_seen.keys() - {row.node_key for row in _rows(case, tables.prediction)}
    return changed + [f"the prediction of {key} left SQL" for key in sorted(gone)]


def check(case: Case) -> dict[str, list[str]]:
    """Return the violations of each kind; the project has just been recovered."""
    predictions = {row.node_key: row for row in _rows(case, tables.prediction)}
    decided = {row.seq: row for row in _rows(case, tables.run)}
    shown = case.graph.read(SETS.format(label=case.label), project=case.name)
    graph_runs = case.graph.read(RUNS, project=case.name)
    violations = {kind: [] for kind in KINDS}
    violations["lost"] = _lost(case, predictions, {row["id"] for row in shown})
    violations["doubled"] = _doubled(case, shown, graph_runs)
    violations["different"] = remember(case) + _different(
        case, predictions, decided, shown, graph_runs
    )
    violations["chain"] = _chain(case, predictions, decided)
    violations["coverage"] = _coverage(case, predictions)
    violations["mirror"] = wrong_rows(case)
    violations["calibration"] = clean_reading.wrong_classes(case) + _learnt(case)
    violations["version"] = _versions(case) + _shadow(case)
    violations["stale"] = clean_reading.stale_sets(case, max(decided, default=0))
    violations["verify"] = _verify(case)
    if case.sibling is not None and case.sibling_hurt:
        violations["lost"] += _lost_by_sibling(case.sibling)
        violations["mirror"] += wrong_rows(case.sibling)
        violations["verify"] += _verify(case.sibling, case.gone)
    violations["unfinished"] = [
        f"run {seq} is {row.state}" for seq, row in decided.items() if row.state != "applied"
    ]
    return violations


def _rows(case: Case, table: Any) -> list[Row[Any]]:
    with case.store.reading() as connection:
        return list(connection.execute(select(table).where(table.c.project == case.name)))


def _lost(case: Case, predictions: dict[str, Row[Any]], shown: set[int]) -> list[str]:
    in_sql = {decode_key(key) for key in predictions}
    return [f"{key} has no prediction" for key in sorted(case.due - in_sql - case.gone)] + [
        f"the set of {key} is not in the graph" for key in sorted(in_sql - shown - case.gone)
    ]


def _lost_by_sibling(sibling: Case) -> list[str]:
    """Nodes without a class that another project on them should have evaluated."""
    query = f"""
    MATCH (n:{sibling.label}) WHERE n.kind IS NULL
      AND NOT EXISTS {{ (n)-[:EVALUATED]->(:RingfenceRun {{project: $project}}) }}
    RETURN n.id AS id"""
    members = {row.node_key for row in _rows(sibling, tables.member)}
    without = [row["id"] for row in sibling.graph.read(query, project=sibling.name)]
    return [
        f"{key} has no set in {sibling.name}" for key in without if encode_key(key) not in members
    ]


def _verify(case: Case, gone: set[int] | None = None) -> list[str]:
    """What `verify` finds, but for nodes that were deleted from the graph.

    Nobody else writes now, so that it need not look again at what differs.
    """
    deleted = {encode_key(key) for key in gone or case.gone}
    return [
        problem
        for problem in verify._check_once(Plan(case.workspace)).verification.problems
        if not (
            problem.endswith((KIND_WORDS["node gone"], "more: node gone"))
            and (problem.startswith("…") or problem.split()[1] in deleted)
        )
    ]


def _doubled(case: Case, shown: list[Any], graph_runs: list[Any]) -> list[str]:
    names = [row["name"] for row in case.graph.read(CLASSES, project=case.name)]
    coverages = case.graph.read(COVERAGES, project=case.name)
    counts = {
        "EVALUATED of node": Counter(row["id"] for row in shown),
        "MAY_BE of": Counter((row["e"], name) for row in shown for name, _ in row["sets"] if name),
        "nodes of run": Counter(row["seq"] for row in graph_runs),
        "nodes of class": Counter(names),
        "coverage of": Counter((row["seq"], row["slice"], row["name"]) for row in coverages),
    }
    return [
        f"{n} {what} {which}"
        for what, counter in counts.items()
        for which, n in counter.items()
        if n > 1
    ]


def _different(
    case: Case,
    predictions: dict[str, Row[Any]],
    decided: dict[int, Row[Any]],
    shown: list[Any],
    graph_runs: list[Any],
) -> list[str]:
    classes = {
        row.version: json.loads(row.manifest)["classes"] for row in _rows(case, tables.model)
    }
    violations = []
    for row in shown:
        stored = predictions.get(encode_key(row["id"]))
        if stored is None:
            violations.append(f"the graph shows a set of {row['id']} that SQL never decided")
            continue
        names = classes[decided[stored.seq].model]
        p = dict(zip(names, json.loads(stored.p_values), strict=True))
        expected = {name: p[name] for name in json.loads(stored.classes)}
        there = {name: value for name, value in row["sets"] if name is not None}
        if (row["seq"], row["size"], there) != (stored.seq, stored.size, expected):
            violations.append(f"the graph shows another set of {row['id']} than SQL")
    for row in graph_runs:
        sql = decided.get(row["seq"])
        if sql is None or (sql.threshold, sql.alpha, sql.model) != (
            row["threshold"], row["alpha"], row["model"],
        ):  # fmt: skip
            violations.append(f"run {row['seq']} in the graph is not SQL's")
    return violations


def _chain(case: Case, predictions: dict[str, Row[Any]], decided: dict[int, Row[Any]]) -> list[str]:
    with case.store.reading() as connection:
        key = chain_key(None, case.settings.engine.folder)
        broken = chain.first_broken(connection, case.name, key)
    violations = [f"entry {broken} doesn't fit"] if broken else []
    bodies = [json.loads(row.body) for row in _rows(case, tables.audit)]
    digests = {body["run"]["seq"]: body["predictions"] for body in bodies if "run" in body}
    if len(digests) != sum(body["kind"] == "decided" for body in bodies):
        violations.append("two entries decide one run")
    if digests.keys() != decided.keys():
        violations.append(f"runs {sorted(decided)} are stored, the chain covers {sorted(digests)}")
    for seq in decided.keys() & digests.keys():
        members = [_payload(row) for row in predictions.values() if row.seq == seq]
        if payload_digest(members) != digests[seq]:
            violations.append(f"the chain has another payload of run {seq}")
    return violations


def _learnt(case: Case) -> list[str]:
    """Nodes that calibrate a version though they took part in its training."""
    learnt = {(row.version, row.node_key) for row in _rows(case, tables.member)}
    return [
        f"{row.node_key} joined {row.version}, which it was a member of"
        for row in _rows(case, tables.joined)
        if (row.version, row.node_key) in learnt
    ]


def _versions(case: Case) -> list[str]:
    """Runs that another version decided than the one in use, by the order of the chain."""
    violations, active = [], None
    rows = sorted(_rows(case, tables.audit), key=lambda row: row.n)
    for body in (json.loads(row.body) for row in rows):
        active = body.get("activation", {}).get("version", active)
        if body["kind"] == "decided" and body["run"]["model"] != active:
            violations.append(
                f"run {body['run']['seq']} is by {body['run']['model']}, not {active}"
            )
    newest = max(_rows(case, tables.activation), key=lambda row: row.n)
    if newest.version != active:
        violations.append(f"{newest.version} is in use, the chain has {active}")
    return violations


def _shadow(case: Case) -> list[str]:
    """Shadow sets that are not of the run's nodes, or beside a run that is not applied."""
    predictions = {row.node_key: row.seq for row in _rows(case, tables.prediction)}
    applied = {row.seq for row in _rows(case, tables.run) if row.state == "applied"}
    counts = Counter((row.version, row.seq) for row in _rows(case, tables.shadow_set))
    runs = {(row.version, row.seq): row for row in _rows(case, tables.shadow_run)}
    violations = [
        f"the shadow set of {row.node_key} is of run {row.seq}, its own of another"
        for row in _rows(case, tables.shadow_set)
        if predictions.get(row.node_key) != row.seq
    ]
    violations += [
        f"shadow of run {seq}, which is not applied" for _, seq in runs if seq not in applied
    ]
    return violations + [
        f"the shadow of run {of[1]} has {counts[of]} sets, not {row.n_sets}"
        for of, row in runs.items()
        if counts[of] != row.n_sets or row.failed
    ]


def _payload(row: Row[Any]) -> Prediction:
    classes, p_values, scores = (
        tuple(json.loads(text)) for text in (row.classes, row.p_values, row.scores)
    )
    return Prediction(row.node_key, classes, p_values, scores, row.degree)


def _coverage(case: Case, predictions: dict[str, Row[Any]]) -> list[str]:
    violations = []
    for key, row in predictions.items():
        number = decode_key(key)
        if number in case.gone:  # its class may have been noticed or not
            continue
        expected = case.expected_classes(number)
        if row.label not in expected:
            violations.append(
                f"the class of {number} is {row.label}, not {sorted(map(str, expected))}"
            )
        elif row.label is not None and row.covered != (row.label in json.loads(row.classes)):
            violations.append(f"covered of {number} is wrong")
    right = _counted([asdict(row) for row in count_coverage(case.store, case.settings)])
    stored = _counted([asdict(row) for row in coverage.stored(case.store, case.name)])
    shown = _counted([row.data() for row in case.graph.read(COVERAGES, project=case.name)])
    for row in right:
        if row not in stored:
            violations.append(f"SQL lacks the coverage {row}")
        if row not in shown:
            violations.append(f"the graph lacks the coverage {row}")
    return violations + [f"the graph and SQL differ in coverage {row}" for row in stored ^ shown]


def _counted(rows: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in COUNTED) for row in rows}
