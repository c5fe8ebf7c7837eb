"""What the audit store holds, as tidy pandas frames: one row per thing, times as timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ringfence.connector.keys import decode_key
from ringfence.connector.records import StoredPrediction
from ringfence.connector.store.models import class_names
from ringfence.connector.store.predictions import payload
from ringfence.connector.store.queries.project import HEAVY_RUN_COLUMNS, ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.connector.store.queries.worklist import whole_worklist
from ringfence.connector.store.queries.worklist_filter import WorklistFilter
from ringfence.jobs.lifecycle.versions import ModelVersions
from ringfence.jobs.views.explain import Explanation

BLOCK_ROWS = 10_000
SHADOW_COLUMNS = (
    "nodes", "known", "coverage", "active_coverage", "mean_size", "active_mean_size",
)  # fmt: skip
SETS = ("key", "classes", "size", "class", "covered", "run", "decided", "degree")


def with_times(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with each column of nanoseconds (`…_ns`) as a timestamp in UTC.

    >>> with_times(pd.DataFrame({"at_ns": [0, None]}))["at"].iloc[0]
    Timestamp('1970-01-01 00:00:00+0000', tz='UTC')
    """
    for name in [name for name in frame.columns if str(name).endswith("_ns")]:
        times = pd.to_datetime(frame[name].astype("Int64"), utc=True, unit="ns")
        frame = frame.assign(**{name.removesuffix("_ns"): times}).drop(columns=name)
    return frame


def models_frame(models: ModelVersions) -> pd.DataFrame:
    """Return the model versions, oldest first; what shadow sets show is in columns `shadow_…`."""
    rows = []
    for version in models.versions:
        shadow = version.shadow
        beside = {
            f"shadow_{name}": None if shadow is None else getattr(shadow, name)
            for name in SHADOW_COLUMNS
        }
        rows.append({k: v for k, v in version.as_json().items() if k != "shadow"} | beside)
    return pd.DataFrame(rows)


def runs_frame(queries: ProjectQueries) -> pd.DataFrame:
    """Return the runs, oldest first; calibration scores and monitor are left out."""
    rows = [as_row(run) for run in queries.unlimited().runs()]
    return with_times(pd.DataFrame(rows).drop(columns=list(HEAVY_RUN_COLUMNS), errors="ignore"))


def sets_frame(queries: ProjectQueries, run: int | None) -> pd.DataFrame:
    """Return the sets of one run or of all, with a column `p <class>` for every class."""
    names = class_names(queries.store, queries.project)
    chosen = [
        stored_run for stored_run in queries.unlimited().runs() if run in (None, stored_run.seq)
    ]
    rows = [
        _set_row(stored, names.get(stored_run.model, []), stored_run.decided_ns)
        for stored_run in chosen
        for block in payload(queries.store, queries.project, stored_run.seq, BLOCK_ROWS)
        for stored in block
    ]
    frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(SETS))
    if rows:
        frame["decided"] = pd.to_datetime(frame["decided"], utc=True, unit="ns")
    return frame


def worklist_frame(queries: ProjectQueries, wanted: WorklistFilter) -> pd.DataFrame:
    """Return the whole worklist of a class, surest first."""
    columns = [
        "key", "p", "size", "degree", "run", "decided", "known_class", "state", "by", "outcome",
        "about", "note", "share",
    ]  # fmt: skip
    rows = [
        (decode_key(node.node_key), node.p, node.size, node.degree, node.seq, node.decided_ns,
         node.label, node.state, node.who, node.outcome, node.about, node.note,
         node.share)
        for node in whole_worklist(queries, wanted)
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(decided=pd.to_datetime(frame["decided"], utc=True, unit="ns"))


def explanation_frame(explanation: Explanation) -> pd.DataFrame:
    """Return the p-values of a node by class, highest first; `attrs` has it in a sentence."""
    frame = pd.DataFrame([value.as_json() for value in explanation.p_values])
    frame.attrs = {"key": explanation.key, "words": explanation.sentence}
    return frame


def _set_row(stored: StoredPrediction, names: Sequence[str], decided_ns: int) -> dict[str, Any]:
    values = (
        decode_key(stored.node_key), stored.classes, stored.size, stored.label, stored.covered,
        stored.seq, decided_ns, stored.degree,
    )  # fmt: skip
    p_values = {f"p {name}": p for name, p in zip(names, stored.p_values, strict=False)}
    return dict(zip(SETS, values, strict=True)) | p_values
