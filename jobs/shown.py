"""Tables as people see them: named columns with formats; the same table is HTML, CSV and report."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.connector.times import words
from ringfence.jobs.figures import score_distances
from ringfence.jobs.looking import Look

Format = str
SMALLEST_P = 0.0001


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, the key of the value, and how it is written."""

    title: str
    key: str
    format: Format = "text"


@dataclass(frozen=True, slots=True)
class Shown:
    """A table with a name, under which it downloads."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: list[dict[str, Any]]
    empty: str = "Nothing yet."


COVERAGE = (
    Column("evaluated", "evaluated", "int"),
    Column("known", "known", "int"),
    Column("covered", "coverage", "percent"),
    Column("verdict", "verdict", "verdict"),
    Column("usual band", "band", "text"),
    Column("anytime bound", "anytime_low", "percent"),
    Column("p", "p_value", "p"),
    Column("naive", "naive", "percent"),
    Column("mean size", "mean_size", "num"),
    Column("one class", "singleton_rate", "percent"),
    Column("of those right", "singleton_hit", "percent"),
    Column("empty", "empty", "int"),
    Column("full", "full", "int"),
)
RUNS = (
    Column("run", "seq", "run"),
    Column("decided", "decided_ns", "time"),
    Column("state", "state"),
    Column("evaluated", "n_evaluated", "int"),
    Column("waiting", "n_waiting", "int"),
    Column("rule", "rule"),
    Column("alpha", "alpha", "num"),
    Column("threshold", "threshold", "threshold"),
    Column("calibration", "n_calibration", "int"),
    Column("model", "model"),
    Column("settings", "config"),
)
THRESHOLDS = (
    Column("run", "seq", "run"),
    Column("NodeEx", "threshold_node", "threshold"),
    Column("EdgeEx", "threshold_edge", "threshold"),
    Column("naive", "threshold_naive", "threshold"),
    Column("calibration", "n_calibration", "int"),
    Column("effective", "effective_calibration", "num"),
)


def enriched(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add what is computed from the counts: rates and the band in words."""
    return [{**row, **_rates(row)} for row in rows]


def _rates(row: dict[str, Any]) -> dict[str, Any]:
    known, single = row["known"], row["singletons_known"]
    about = "" if row["exact"] else "about "
    band = f"{about}{100 * row['low']:.1f} – {100 * row['high']:.1f} %" if known else None
    return {
        "naive": row["covered_naive"] / known if known else None,
        "singleton_rate": row["singletons"] / row["evaluated"] if row["evaluated"] else None,
        "singleton_hit": row["singleton_hits"] / single if single else None,
        "anytime_low": row["anytime_low"] if known else None,
        "p_value": row["p_value"] if known else None,
        "band": band,
    }


def _by_slice(slice_: str, title: str) -> Callable[[Look], Shown]:
    def make(look: Look) -> Shown:
        rows = look.coverage(slice_)[::-1]
        return Shown(
            f"coverage-{slice_}", title, (Column("run", "seq", "run"), *COVERAGE), enriched(rows)
        )

    return make


def _named(slice_: str, title: str, name: str) -> Callable[[Look], Shown]:
    def make(look: Look) -> Shown:
        columns = (Column(slice_, "name"), *COVERAGE)
        empty = "Nothing known yet."
        if slice_ == "group":
            empty = 'No groups. Set [audit] groups = ["region"]: later runs are counted by it.'
        return Shown(name, title, columns, enriched(look.named(slice_)), empty)

    return make


def _runs(look: Look) -> Shown:
    return Shown("runs", "Runs", RUNS, look.runs()[::-1], "No run yet: ringfence score")


def _thresholds(look: Look) -> Shown:
    return Shown("thresholds", "Thresholds", THRESHOLDS, look.runs()[::-1])


def _quarantine(look: Look) -> Shown:
    columns = (Column("reason", "reason"), Column("nodes", "nodes", "int"))
    return Shown("quarantine", "Quarantine", columns, look.quarantine(), "No node is unusable.")


def _schedule(look: Look) -> Shown:
    columns = (
        Column("job", "job"),
        Column("when", "trigger"),
        Column("due", "due_ns", "time"),
        Column("ended", "ended_ns", "time"),
        Column("outcome", "outcome"),
        Column("words", "words"),
    )
    empty = "No schedule has run: ringfence schedule"
    return Shown("schedule", "Schedule", columns, look.schedule(), empty)


def _alarms(look: Look) -> Shown:
    columns = (
        Column("rule", "rule"),
        Column("state", "state", "state"),
        Column("since", "since_ns", "time"),
        Column("why", "words"),
    )
    return Shown("alarms", "Alarms", columns, look.alarms(), "No audit yet: ringfence audit")


def _events(look: Look) -> Shown:
    columns = (
        Column("at", "at_ns", "time"),
        Column("rule", "rule"),
        Column("was", "was"),
        Column("is", "state", "state"),
        Column("why", "words"),
        Column("told by", "delivered"),
    )
    return Shown(
        "alarm-events", "Changes of alarms", columns, look.alarm_events(), "No alarm so far."
    )


def _chain(look: Look) -> Shown:
    columns = (
        Column("entry", "n", "int"),
        Column("kind", "kind"),
        Column("what", "what"),
        Column("hash", "hash", "hash"),
        Column("entry before", "prev", "hash"),
    )
    return Shown("chain", "Audit chain", columns, look.chain(), "The chain is empty.")


def _models(look: Look) -> Shown:
    columns = (
        Column("version", "version"),
        Column("trained", "trained_ns", "time"),
        Column("network", "network"),
        Column("classes", "class_count", "int"),
        Column("train", "train", "int"),
        Column("validation", "validation", "int"),
        Column("calibration", "calibration", "int"),
        Column("weights", "weights", "hash"),
    )
    rows = [
        {
            **row,
            "network": row["manifest"]["network"],
            "class_count": len(row["manifest"]["classes"]),
            "weights": row["manifest"].get("weights_sha256", ""),
            **row["manifest"]["counts"],
        }
        for row in look.models()
    ]
    return Shown("models", "Models", columns, rows[::-1], "No model yet: ringfence train")


def _drift(look: Look) -> Shown:
    columns = (
        Column("run", "seq", "run"),
        Column("distance of scores", "distance", "num"),
        Column("new classes watched", "new", "int"),
        Column("mean p", "mean_p", "num"),
    )
    watches = look.watches()
    apart = {row["seq"]: row["distance"] for row in score_distances(watches)}
    rows = [
        {
            "seq": row["seq"],
            "distance": apart.get(row["seq"]),
            "new": (row["watch"] or {}).get("new"),
            "mean_p": (row["watch"] or {}).get("mean_p"),
        }
        for row in reversed(watches)
    ]
    return Shown("drift", "Drift by run", columns, rows)


TABLES: dict[str, Callable[[Look], Shown]] = {
    "coverage-run": _by_slice("run", "Coverage of each run"),
    "coverage-window": _by_slice("window", "Coverage of the last runs together"),
    "coverage-total": _by_slice("total", "Coverage of all runs so far"),
    "classes": _named("class", "Classes, worst first", "classes"),
    "groups": _named("group", "Groups, worst first", "groups"),
    "runs": _runs,
    "thresholds": _thresholds,
    "drift": _drift,
    "models": _models,
    "quarantine": _quarantine,
    "schedule": _schedule,
    "alarms": _alarms,
    "alarm-events": _events,
    "chain": _chain,
}


def cell(value: Any, format_: Format) -> str:
    """Return a value as a person reads it.

    >>> cell(0.9051, "percent"), cell(None, "threshold"), cell(12345, "int"), cell(8e-6, "p")
    ('90.5 %', '−∞', '12,345', '< 0.0001')
    """
    if value is None:
        return "−∞" if format_ == "threshold" else "–"
    if format_ == "percent":
        return f"{100 * value:.1f} %"
    if format_ == "p":
        return f"{value:.3g}" if value >= SMALLEST_P else f"< {SMALLEST_P:g}"
    if format_ in {"num", "threshold"}:
        return f"{value:.4g}"
    if format_ == "int":
        return f"{value:,}"
    if format_ == "time":
        return words(value)
    return str(value)


def as_csv(table: Shown) -> str:
    """Return the table's raw values; text that a spreadsheet would run gets a quote before it."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([column.title for column in table.columns])
    for row in table.rows:
        writer.writerow([_csv_cell(row.get(column.key), column.format) for column in table.columns])
    return out.getvalue()


def _csv_cell(value: Any, format_: Format) -> Any:
    if format_ == "time" and value is not None:
        return words(value)
    if isinstance(value, str) and value[:1] in set("=+-@\t\r"):
        return "'" + value
    return "" if value is None else value
