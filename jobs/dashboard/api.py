"""The JSON API behind the pages; its description is at /api/openapi.json."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request

from ringfence.connector.errors import ConfigError
from ringfence.connector.records import Slice
from ringfence.connector.store.queries.records import as_row
from ringfence.connector.store.queries.worklist import PAGE_ROWS, read_worklist
from ringfence.jobs.auditing.list_audit import audit_lists
from ringfence.jobs.dashboard import schemas
from ringfence.jobs.dashboard.dependencies import OpenDashboard, Queries
from ringfence.jobs.views.explain import explain
from ringfence.jobs.views.sample import read_sample_status
from ringfence.jobs.worklist.list_choice import choose_list
from ringfence.jobs.worklist.request import filter_of, place_text, require_names
from ringfence.jobs.worklist.table import classes_to_choose, row_of
from ringfence.jobs.worklist.triage import KINDS, read_triage

NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"model": schemas.Problem, "description": "There is none."}
}
UNUSABLE: dict[int | str, dict[str, Any]] = {
    400: {"description": "Not a request that this dashboard understands."},
    401: {"description": "No login and no right token."},
    429: {"description": "Too many wrong tokens from this address."},
}
Last = Annotated[int, Query(ge=1, le=1000, description="How many runs, the newest.")]
Seq = Annotated[int, Path(ge=1, le=2**62, description="Number of a run.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many nodes.")]
Pile = Literal["investigate", "clear", "open"]
Row = dict[str, Any]

router = APIRouter(prefix="/api/v1", responses=UNUSABLE, tags=["ringfence"])


@router.get("/status", response_model=schemas.Status)
def status(queries: Queries) -> Row:
    """Verdict, counts, last run, firing alarms, audit sample."""
    total, runs = queries.verdict(), queries.runs(last=1)
    sample = read_sample_status(queries)
    return {
        "project": queries.project,
        "verdict": total.verdict if total else "not enough known yet",
        "words": total.words if total else "no audit yet",
        **queries.counts().as_dict(),
        "quarantined": sum(reason.nodes for reason in queries.quarantine()),
        "last_run": runs[-1].seq if runs else None,
        "chain_entries": queries.chain_length(),
        "alarms_firing": [alarm.rule for alarm in queries.alarms() if alarm.state == "firing"],
        "sample": None if sample is None else sample.as_json(),
    }


@router.get("/coverage/{slice_}", response_model=list[schemas.Coverage])
def coverage(queries: Queries, slice_: Slice, last: Last = 200) -> list[Row]:
    """Coverage rows of one slice, oldest run first."""
    return [as_row(row) for row in queries.coverage(slice_, last, every_alpha=True)]


@router.get("/runs", response_model=list[schemas.RunSummary])
def runs(queries: Queries, last: Last = 200) -> list[Row]:
    """The last runs, oldest first."""
    return [as_row(run) for run in queries.runs(last)]


@router.get("/runs/{seq}", response_model=schemas.Run, responses=NOT_FOUND)
def run(queries: Queries, seq: Seq) -> Row:
    """One run with timings, notes, calibration score quantiles and the exchangeability monitor."""
    decided = queries.run(seq)
    if decided is None:
        raise HTTPException(404, f"there is no run {seq}")
    return as_row(decided)


@router.get("/nodes", response_model=schemas.Node, responses=NOT_FOUND)
def node(queries: Queries, key: Annotated[str, Query(min_length=1, max_length=512)]) -> Row:
    """One evaluated node by its key, or by its typed key such as i:12."""
    explanation = explain(queries, key)
    if explanation is None:
        raise HTTPException(404, "no node with this key was evaluated")
    last = explanation.history[-1] if explanation.history else None
    return {
        "key": explanation.key,
        "typed_key": explanation.typed_key,
        "words": explanation.sentence,
        "classes": list(explanation.classes),
        "p_values": [
            {"name": value.class_, "p": value.p, "in_set": value.in_set}
            for value in explanation.p_values
        ],
        "alpha": explanation.alpha,
        "degree": explanation.degree,
        "run": explanation.run.seq,
        "label": last.label if last else None,
        "covered": last.covered if last else None,
        "chain_entry": explanation.chain.n if explanation.chain else None,
        "groups": explanation.groups,
        "details_removed_ns": explanation.removed_ns,
        "nodes_of_key": [node.node_key for node in explanation.nodes_of_key],
    }


@router.get("/lists", response_model=list[schemas.List])
def lists(
    queries: Queries,
    detail: Annotated[bool, Query(description="Every run, and every group.")] = False,
) -> list[Row]:
    """Promised and realised share of wrong nodes per list: all runs, the last 90 days, the last."""
    rows = audit_lists(queries.store, queries.project, detail=detail)
    return [row.as_json() for row in rows]


@router.get("/lists/nodes", response_model=schemas.Piles, responses=NOT_FOUND)
def list_nodes(
    queries: Queries,
    run: Annotated[int | None, Query(ge=1, le=2**62, description="The last by default.")] = None,
    pile: Annotated[Pile | None, Query(description="Only this one.")] = None,
    limit: Limit = PAGE_ROWS,
) -> Row:
    """The nodes of a run by pile, those that would be listed at the smallest share first."""
    try:
        piles = read_triage(queries, run, pile=pile, limit=limit)
    except ConfigError as error:
        raise HTTPException(404, error.found) from None
    wanted = sum(piles.count(name) for name in KINDS if pile in (None, name))
    return {
        "run": piles.run.seq,
        "words": [facts.words for facts in piles.run.lists],
        "piles": {name: piles.count(name) for name in KINDS},
        "nodes": [node.as_row() for node in piles.nodes],
        "left_out": wanted - len(piles.nodes),
    }


@router.get("/worklist", response_model=schemas.Worklist, responses=NOT_FOUND)
def worklist(request: Request, queries: Queries, limit: Limit = PAGE_ROWS) -> Row:
    """Nodes whose set holds a class, surest first, with the filters of the page."""
    given = {name: text for name, text in request.query_params.items() if name != "limit"}
    try:
        require_names(parameter for parameter in given if parameter not in ("class", "after"))
        wanted = filter_of(given)
        if wanted.list_ is not None:
            wanted = choose_list(queries, wanted).wanted
    except ConfigError as error:
        raise HTTPException(400, f"{error.found}; needed: {error.needed}") from None
    if wanted.class_ not in classes_to_choose(queries):
        raise HTTPException(404, "no model of this project knows such a class")
    nodes = read_worklist(queries, wanted, limit + 1)
    shown = nodes[:limit]
    rows = [row_of(node, wanted.class_) for node in shown]
    more = len(nodes) > limit
    return {
        "class_": wanted.class_,
        "nodes": [{**row, "class_": row["class"]} for row in rows],
        "after": place_text(shown[-1].place) if more else None,
    }


@router.get("/alarms", response_model=list[schemas.Alarm])
def alarms(queries: Queries) -> list[Row]:
    """What every alarm rule says now."""
    return [as_row(alarm) for alarm in queries.alarms()]


@router.get("/chain", response_model=schemas.Chain)
def chain(dashboard: OpenDashboard) -> Row:
    """Whether the audit chain fits, entry by entry."""
    tone, sentence = dashboard.verify()
    sound = {"good": True, "bad": False}.get(tone)
    return {"entries": dashboard.queries.chain_length(), "words": sentence, "sound": sound}
