"""The answers of the reading tools, each with its promise and with marked texts of the graph.

A function per tool: it opens what it reads, writes nothing, and closes it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import decode_key
from ringfence.connector.list_terms import ListFacts
from ringfence.connector.neo4j.read.example_queries import GRAPH_SCHEMA
from ringfence.connector.records import StoredCoverage
from ringfence.connector.store import migrate
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist import read_worklist
from ringfence.connector.times import format_time
from ringfence.jobs.auditing.list_audit import audit_lists
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.mcp import promises
from ringfence.jobs.mcp.untrusted import NOTE, all_from_graph, from_graph
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.views.explain import Explanation, explain, run_explain
from ringfence.jobs.views.promise import promise_of_run
from ringfence.jobs.worklist.request import filter_of
from ringfence.jobs.worklist.table import classes_to_choose, require_class
from ringfence.jobs.worklist.triage import KINDS, read_triage

Answer = dict[str, Any]

MAX_NODES = 200
MAX_REASONS = 30


def worklist(settings: Settings, limit: int, filters: Mapping[str, str]) -> Answer:
    """The nodes whose set holds a class, by p-value; without a class, the classes to choose."""
    wanted = filter_of(filters)
    with _queries(settings) as queries:
        if not wanted.class_:
            classes = all_from_graph(classes_to_choose(queries))
            return _answer(promises.WORKLIST, queries, classes_to_choose=classes)
        require_class(queries, wanted.class_)
        nodes = read_worklist(queries, wanted, min(limit, MAX_NODES))
        rows = [
            {
                "node": from_graph(node.key),
                "p": node.p,
                "classes_in_set": node.size,
                "run": node.seq,
                "decided": format_time(node.decided_ns),
                "known_class": from_graph(node.label),
                "state": node.state,
                "who": from_graph(node.who),
                "outcome": node.outcome,
                "note": from_graph(node.note),
            }
            for node in nodes
        ]
        return _answer(
            promises.WORKLIST, queries, may_be=from_graph(wanted.class_), limit=limit, nodes=rows
        )


def lists(settings: Settings, run: int | None, pile: str, limit: int) -> Answer:
    """The lists of a run: promise, what came true so far, and the nodes of its piles."""
    if pile and pile not in KINDS:
        raise ConfigError(
            found=f"no pile is called {pile!r}", needed=f"one of: {', '.join(KINDS)}",
            next_step="the tool lists, without a pile",
        )  # fmt: skip
    with _queries(settings) as queries:
        piles = read_triage(queries, run, pile=pile or None, limit=min(limit, MAX_NODES))
        chosen = sum(piles.count(name) for name in KINDS if pile in ("", name))
        rows = [
            {
                "pile": node.pile,
                "list": node.list_ or None,
                "node": from_graph(decode_key(node.node_key)),
                "share": node.share,
                "set": all_from_graph(node.classes),
                "known_class": from_graph(node.label),
            }
            for node in piles.nodes
        ]
        return _answer(
            promises.LISTS,
            queries,
            run=piles.run.seq,
            lists=[_list_facts(facts) for facts in piles.run.lists],
            piles={name: piles.count(name) for name in KINDS},
            so_far=[
                {"list": row.terms.name, "over": row.slice, "listed": row.listed,
                 "known": row.known, "wrong": row.false, "verdict": row.verdict,
                 "says": from_graph(row.words)}
                for row in audit_lists(queries.store, queries.project)
            ],
            nodes=rows,
            left_out=chosen - len(rows),
        )  # fmt: skip


def _list_facts(facts: ListFacts) -> Answer:
    return {
        "list": facts.terms.name,
        "class": from_graph(facts.terms.class_),
        "holds": "nodes not of the class" if facts.terms.is_clear else "nodes of the class",
        "may_be_wrong": facts.terms.may_be_wrong,
        "per": facts.terms.per,
        "listed": facts.listed,
        "status": facts.status,
        "says": from_graph(facts.words),
    }


def node(settings: Settings, key: str) -> Answer:
    """One node: its set, p-values, run, class once it is known, and what speaks against them."""
    with _queries(settings) as queries:
        explanation = explain(queries, key)
        if explanation is None:
            raise ConfigError(
                found=f"no node with the key {key!r} was evaluated",
                needed="the key of a node that has a set; s:12 for the text 12, i:12 for a number",
                next_step="the tool worklist, which lists nodes",
            )
        return _answer(promises.NODE, queries, **_node_facts(explanation))


def why(settings: Settings, key: str, seconds: float) -> Answer:
    """What a node's set rests on: neighbours, relationship types and columns, asked one by one."""
    with open_workspace(settings) as workspace:
        explanation = run_explain(workspace, key, why=True, seconds=seconds)
        queries = ProjectQueries(workspace.store, workspace.project)
        return _answer(
            promises.WHY, queries, **_node_facts(explanation), **_reason_facts(explanation)
        )


def coverage(settings: Settings) -> Answer:
    """What was promised and what was covered: all runs, classes, groups and the audit sample."""
    with _queries(settings) as queries:
        rows = [*queries.totals(), *queries.named("class"), *queries.named("group")]
        rows += queries.coverage("sample", last=1)
        return _answer(promises.COVERAGE, queries, rows=[_coverage_facts(row) for row in rows])


def status(settings: Settings) -> Answer:
    """Runs, models, counts, alarms and quarantine, from the audit store alone."""
    with _queries(settings) as queries:
        runs = queries.complete_runs(5)
        verdict = queries.verdict()
        return _answer(
            promises.STATUS,
            queries,
            project=from_graph(queries.project),
            verdict="not enough known yet" if verdict is None else verdict.verdict,
            **queries.counts().as_dict(),
            models=[
                {
                    "version": model.version,
                    "state": model.state,
                    "network": from_graph(model.network),
                    "classes": all_from_graph(model.classes),
                }
                for model in queries.models()
            ],
            last_runs=[
                {"run": run.seq, "decided": format_time(run.decided_ns), "alpha": run.alpha}
                for run in runs
            ],
            alarms=[
                {"rule": alarm.rule, "state": alarm.state, "says": from_graph(alarm.words)}
                for alarm in queries.alarms()
            ],
            quarantine=[
                {"reason": from_graph(row.reason), "nodes": row.nodes}
                for row in queries.quarantine()
            ],
        )


def verify(settings: Settings, full: bool = False) -> Answer:
    """Whether the record is as it was decided: what is new, a sample of the rest; or all of it."""
    with open_workspace(settings) as workspace:
        done = run_verification(workspace, since=not full)
        return _answer(
            promises.VERIFY,
            ProjectQueries(workspace.store, workspace.project),
            sound=not done.problems,
            kind=done.kind,
            checked={"entries": done.entries, "runs": done.runs, "predictions": done.predictions},
            since=None if done.since is None else asdict(done.since),
            problems=all_from_graph(done.problems),
            notes=all_from_graph(done.notes),
        )


def schema(settings: Settings) -> Answer:
    """The user's graph as it is mapped, and what ringfence adds to it."""
    mapping = settings.mapping()
    with _queries(settings) as queries:
        return _answer(
            promises.SCHEMA,
            queries,
            labels=[
                {
                    "label": from_graph(part.label),
                    "key": from_graph(part.key),
                    "columns": all_from_graph(column.name for column in part.columns),
                    "gets_sets": place == 0,
                }
                for place, part in enumerate(mapping.nodes)
            ],
            relationships=[
                {
                    "from": from_graph(mapping.nodes[relation.source].label),
                    "type": from_graph(relation.type),
                    "to": from_graph(mapping.nodes[relation.target].label),
                }
                for relation in mapping.relations
            ],
            class_property=from_graph(mapping.class_property),
            written_by_ringfence=list(GRAPH_SCHEMA),
        )


@contextmanager
def _queries(settings: Settings) -> Iterator[ProjectQueries]:
    with open_audit(settings) as store:
        migrate.require_sql(store)
        yield ProjectQueries(store, settings.project)


def _answer(promise: str, queries: ProjectQueries, **facts: Any) -> Answer:
    """Put the promise before the facts; that of the last run may name classes, so it is marked."""
    runs = queries.complete_runs(1)
    in_force = from_graph(promise_of_run(runs[-1])) if runs else None
    return {"promise": promise, "promise_of_the_last_run": in_force, "texts": NOTE, **facts}


def _node_facts(explanation: Explanation) -> Answer:
    last = explanation.history[-1] if explanation.history else None
    return {
        "node": from_graph(explanation.key),
        "set": all_from_graph(explanation.classes),
        "p_values": [
            {"class": from_graph(value.class_), "p": value.p, "in_set": value.in_set,
             "level": value.level}
            for value in explanation.p_values
        ],
        "says": from_graph(explanation.sentence),
        "doubts": all_from_graph(explanation.doubts),
        "run": explanation.run.seq,
        "decided": format_time(explanation.run.decided_ns),
        "model": explanation.run.model,
        "model_state": explanation.model_state,
        "known_class": None if last is None else from_graph(last.label),
        "covered": None if last is None else last.covered,
        "in_graph": explanation.in_graph,
        "groups": [
            {"property": from_graph(name), "value": from_graph(value)}
            for name, value in explanation.groups.items()
        ],
    }  # fmt: skip


def _reason_facts(explanation: Explanation) -> Answer:
    reasons = explanation.reasons
    if reasons is None:
        return {"reasons": []}
    return {
        "method": reasons.method,
        "reasons": [
            {
                "without": from_graph(reason.part.describe()),
                "value": from_graph(reason.value) if reason.value else None,
                "p_values": _by_class(reasons.classes, reason.p_values),
                "enters": all_from_graph(reason.enters),
                "leaves": all_from_graph(reason.leaves),
                "weight": reason.weight,
            }
            for reason in reasons.reasons[:MAX_REASONS]
        ],
        "smallest_changes": all_from_graph(change.describe() for change in reasons.smallest),
        "not_asked": reasons.left_unasked + max(len(reasons.reasons) - MAX_REASONS, 0),
        "stopped": from_graph(reasons.stopped) if reasons.stopped else None,
    }


def _by_class(classes: Sequence[str], p_values: Sequence[float]) -> list[Answer]:
    pairs = zip(classes, p_values, strict=False)
    return [{"class": from_graph(name), "p": value} for name, value in pairs]


def _coverage_facts(row: StoredCoverage) -> Answer:
    return {
        "slice": row.slice,
        "name": from_graph(row.name) if row.name else None,
        "promised": 1 - row.alpha,
        "has_a_promise_of_its_own": row.slice == "total" or row.own_promise,
        "evaluated": row.evaluated,
        "known": row.known,
        "covered": row.coverage,
        "usual_from": row.low,
        "usual_to": row.high,
        "verdict": row.verdict,
        "model": row.model,
    }
