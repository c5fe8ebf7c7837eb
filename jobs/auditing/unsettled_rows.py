"""Rows about runs of which only early classes are known: nothing is judged by a choice of classes.

Where some classes become known later than others, the known nodes of a young run are a choice of
classes, and their coverage is that of these classes. Such a run waits until it is settled
(`models.calibration.cohort`), in every mode of calibration. A row over many runs counts all known
nodes; its coverage, band and verdict are those of the settled runs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ringfence.connector.records import UNSETTLED, CoverageRow
from ringfence.connector.store.calibration.joined import run_counts
from ringfence.connector.store.calibration.known import KnownNodes
from ringfence.connector.store.engine import Store
from ringfence.connector.store.models import find_active_manifest
from ringfence.connector.store.tallies import Tally
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.scoring.calibration.settled_runs import find_settled, usual_labels

NOT_SETTLED = "only its early classes are known, or those of listed nodes"
WAITING = "not enough known yet"


def find_unsettled(store: Store, settings: Settings, as_of_ns: int | None) -> dict[int, int]:
    """Return the runs that are not settled, if some class is clearly short among their known nodes.

    Where their known nodes are no choice of classes they count like any others. Beside each run
    stands how many of them are *selected*: on a list, or worked on before the class was noticed,
    and not in the audit sample.
    """
    manifest = find_active_manifest(store, settings.project)
    runs = [
        run
        for run in run_counts(store, settings.project)
        if as_of_ns is None or run.decided_ns <= as_of_ns
    ]
    if manifest is None or not runs:
        return {}
    known = [
        count
        for count in KnownNodes(store, settings.project, "").counts()
        if as_of_ns is None or count.noticed_ns <= as_of_ns
    ]
    usual = usual_labels(json.loads(manifest), delay_days=settings.graph.label_delay_days)
    selected = dict.fromkeys(find_settled(known, runs, usual, between=True).find_early(), 0)
    for count in known:
        if count.evaluated_in in selected and count.selected and not count.sampled:
            selected[count.evaluated_in] += count.nodes
    return selected


def waiting_runs(span: Sequence[Tally], unsettled: Collection[int]) -> list[Tally]:
    """Return the runs of a row that have known nodes and are not settled."""
    return [tally for tally in span if tally.seq in unsettled and tally.counts["known"]]


def without_unsettled(
    row: CoverageRow,
    judged: CoverageRow | None,
    span: Sequence[Tally],
    unsettled: Mapping[int, int],
) -> CoverageRow:
    """Return a row with coverage, band and verdict of its settled runs.

    Args:
        row: all known nodes of the row.
        judged: those of its settled runs; None where there are none.
        span: the runs of the row.
        unsettled: runs that wait, with how many of their known nodes are selected.
    """
    waiting = waiting_runs(span, unsettled)
    early = sum(tally.counts["known"] for tally in waiting)
    selected = _describe_selected(sum(unsettled[tally.seq] for tally in waiting))
    if judged is None or not judged.known:
        return _waiting(row, NOT_SETTLED + selected)
    left_out = (
        f"; {early:,} known nodes of runs of which only early classes are known, or those of "
        f"listed nodes, do not count{selected}"
    )
    return replace(
        row,
        coverage=judged.coverage,
        low=judged.low,
        high=judged.high,
        p_value=judged.p_value,
        anytime_low=judged.anytime_low,
        anytime_p=judged.anytime_p,
        raised_by=judged.raised_by,
        verdict=judged.verdict,
        words=judged.words + left_out,
    )


def _describe_selected(nodes: int) -> str:
    return f"; {nodes:,} of these are selected: listed or worked on" if nodes else ""


def _waiting(row: CoverageRow, reason: str) -> CoverageRow:
    words = f"{WAITING} ({row.known:,} of {row.evaluated:,}; {reason})"
    return replace(
        row, verdict=WAITING, raised_by=UNSETTLED, words=words, p_value=1.0, anytime_p=1.0,
        anytime_low=0.0,
    )  # fmt: skip
