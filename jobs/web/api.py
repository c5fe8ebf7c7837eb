"""The JSON API behind the pages; its description is at /api/openapi.json."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request

from ringfence.jobs.explain import explain
from ringfence.jobs.web import schemas
from ringfence.jobs.web.context import Dashboard

NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"model": schemas.Problem, "description": "There is none."}
}
UNUSABLE: dict[int | str, dict[str, Any]] = {
    400: {"description": "Not a request that this dashboard understands."},
    401: {"description": "No login and no right token."},
}
Slice = Literal["run", "window", "total", "class", "group"]
Last = Annotated[int, Query(ge=1, le=1000, description="How many runs, the newest.")]
Seq = Annotated[int, Path(ge=1, le=2**62, description="Number of a run.")]

router = APIRouter(prefix="/api/v1", responses=UNUSABLE, tags=["ringfence"])


def dashboard_of(request: Request) -> Dashboard:
    """Return the dashboard that a request is for."""
    found: Dashboard = request.app.state.dashboard
    return found


@router.get("/status", response_model=schemas.Status)
def status(request: Request) -> dict[str, Any]:
    """Verdict, counts, last run, firing alarms."""
    look = dashboard_of(request).look
    total, runs = look.total(), look.runs(last=1)
    return {
        "project": look.project,
        "verdict": total["verdict"] if total else "not enough known yet",
        "words": total["words"] if total else "no audit yet",
        **look.counts(),
        "quarantined": sum(row["nodes"] for row in look.quarantine()),
        "last_run": runs[-1]["seq"] if runs else None,
        "chain_entries": look.chain_length(),
        "alarms_firing": [row["rule"] for row in look.alarms() if row["state"] == "firing"],
    }


@router.get("/coverage/{slice_}", response_model=list[schemas.Coverage])
def coverage(request: Request, slice_: Slice, last: Last = 200) -> list[dict[str, Any]]:
    """Coverage rows of one slice, oldest run first."""
    return dashboard_of(request).look.coverage(slice_, last)


@router.get("/runs", response_model=list[schemas.RunSummary])
def runs(request: Request, last: Last = 200) -> list[dict[str, Any]]:
    """The last runs, oldest first."""
    return dashboard_of(request).look.runs(last)


@router.get("/runs/{seq}", response_model=schemas.Run, responses=NOT_FOUND)
def run(request: Request, seq: Seq) -> dict[str, Any]:
    """One run with timings, notes, calibration score quantiles and the watch."""
    found = dashboard_of(request).look.run(seq)
    if found is None:
        raise HTTPException(404, f"there is no run {seq}")
    return found


@router.get("/nodes", response_model=schemas.Node, responses=NOT_FOUND)
def node(
    request: Request, key: Annotated[str, Query(min_length=1, max_length=512)]
) -> dict[str, Any]:
    """One evaluated node by its key, or by its typed key such as i:12."""
    found = explain(dashboard_of(request).look, key)
    if found is None:
        raise HTTPException(404, "no node with this key was evaluated")
    last = found.history[-1] if found.history else None
    return {
        "key": found.key,
        "typed_key": found.typed_key,
        "words": found.words,
        "classes": list(found.classes),
        "p_values": [
            {"name": one["class"], "p": one["p"], "in_set": one["in_set"]} for one in found.p_values
        ],
        "alpha": found.alpha,
        "degree": found.degree,
        "run": found.run["seq"],
        "label": last["label"] if last else None,
        "covered": last["covered"] if last else None,
        "chain_entry": found.chain["n"] if found.chain else None,
        "groups": found.groups,
    }


@router.get("/alarms", response_model=list[schemas.Alarm])
def alarms(request: Request) -> list[dict[str, Any]]:
    """What every alarm rule says now."""
    return dashboard_of(request).look.alarms()


@router.get("/chain", response_model=schemas.Chain)
def chain(request: Request) -> dict[str, Any]:
    """Whether the audit chain fits, entry by entry."""
    dashboard = dashboard_of(request)
    tone, words = dashboard.verify()
    sound = {"good": True, "bad": False}.get(tone)
    return {"entries": dashboard.look.chain_length(), "words": words, "sound": sound}
