"""The pages: what each one shows. Nothing is computed here that is not a choice of rows."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

from ringfence.connector.times import words
from ringfence.jobs import figures
from ringfence.jobs.alarms import WATCH_DELTA
from ringfence.jobs.coverage_rows import without_group
from ringfence.jobs.explain import Explanation, readable, record_of, state_words
from ringfence.jobs.figures import Figure, Line
from ringfence.jobs.looking import Look
from ringfence.jobs.shown import TABLES, Shown
from ringfence.models.watch import Watch

Values = dict[str, Any]
TABLE_ROWS = 50


def tables(look: Look, *names: str) -> list[Shown]:
    """Return the named tables; of histories the newest rows, the CSV has all."""
    short = replace(look, most=TABLE_ROWS)
    return [TABLES[name](short) for name in names]


def today(look: Look) -> Values:
    """Verdict, last and next run, backlog, quarantine, alarms, schedule."""
    due = {row["job"]: row["due_ns"] for row in look.schedule()}.get("score")
    next_run = words(due) if due else "by hand"
    total, counts, lease = look.total(), look.counts(), look.lease()
    runs = look.runs(last=1)
    last = runs[-1] if runs else None
    unusable = sum(row["nodes"] for row in look.quarantine())
    mark, busy = look.mark(), lease["working"] if lease else None
    sentence = "No audit yet. Run: ringfence audit"
    if total:
        sentence = sentence_of(total["words"])
    facts = [
        ("Last run", *((str(last["seq"]), words(last["decided_ns"])) if last else ("none", ""))),
        ("Next run", next_run, f"at work now: {busy}" if busy else ""),
        ("Evaluated", f"{counts['evaluated']:,}", "once each, ever"),
        ("Class not known yet", f"{counts['unknown']:,}", f"{counts['known']:,} are known"),
        ("In quarantine", f"{unusable:,}", "nodes that can't be used"),
        ("Last audit", *(words(mark["audited_ns"]).split() if mark else ("never", ""))),
    ]  # fmt: skip
    return {
        "title": "Today",
        "verdict": total["verdict"] if total else "not enough known yet",
        "sentence": sentence,
        "bias": sentence_of(total["bias_words"]) if total else "",
        "facts": facts,
        "figures": [figures.coverage_per_run(look.coverage("run"))],
        "tables": tables(look, "alarms", "quarantine", "schedule"),
    }


def sentence_of(words: str) -> str:
    """Return words with a capital, a full stop, and no line break before `%` or around `=`.

    >>> sentence_of("kept: all")
    'Kept: all.'
    """
    whole = f"{words[:1].upper()}{words[1:]}." if words else ""
    return whole.replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0")


def coverage(look: Look) -> Values:
    """Coverage per run, cumulative, set sizes."""
    per_run, total = look.coverage("run"), look.coverage("total")
    return {
        "title": "Coverage",
        "lead": [
            "Each node is judged by the set that it got on arrival, once its class became known. "
            "The usual band is right for one look at one run; the anytime bound for who looks "
            "every day."
        ],
        "figures": [
            figures.coverage_per_run(per_run),
            figures.cumulative(total),
            figures.set_sizes(per_run),
        ],
        "tables": tables(look, "coverage-run", "coverage-total", "coverage-window"),
    }


def classes(look: Look) -> Values:
    """Coverage by class and by group."""
    groups, total = look.named("group"), look.total()
    return {
        "title": "Classes & groups",
        "lead": [
            "The promise is for all nodes together. A class or group below its band is a reason "
            "to look closer, not a broken promise; p-values here pay for looking at all of them.",
            *map(sentence_of, without_group(groups, total["evaluated"] if total else 0)),
        ],
        "figures": [
            figures.classes(look.named("class"), "classes", "Coverage by class"),
            figures.classes(groups, "groups", "Coverage by group"),
        ],
        "tables": tables(look, "classes", "groups"),
    }


def thresholds(look: Look) -> Values:
    """Thresholds over time, calibration size, score distributions."""
    runs = look.runs()
    return {
        "title": "Thresholds",
        "lead": [],
        "figures": [
            figures.thresholds(runs),
            figures.calibration_size(runs),
            figures.score_densities(look.watches()),
        ],
        "tables": tables(look, "thresholds"),
    }


def drift(look: Look, rule: str) -> Values:
    """The watch, distances, volumes, the advisor."""
    watches, runs = look.watches(), look.runs()
    state = Watch.start()
    if watches and watches[-1]["watch"]:
        state = Watch.from_dict(watches[-1]["watch"]["state"])
    mark = look.mark()
    advice = mark["advice"] if mark else None
    return {
        "title": "Drift",
        "watch": sentence_of(state.words(WATCH_DELTA)),
        "alarm": bool(state.labels) and state.alarm(WATCH_DELTA),
        "advice": [line.removeprefix("- ") for line in advice["words"].splitlines()]
        if advice
        else [],
        "nodes": advice["nodes"] if advice else 0,
        "rule": rule,
        "figures": [
            figures.stakes(watches, 2 / WATCH_DELTA),
            figures.distances(watches),
            figures.thresholds(runs),
            figures.arrivals(runs),
            figures.degrees(look.coverage("run")),
        ],
        "tables": tables(look, "drift"),
    }


def runs(look: Look) -> Values:
    """All runs, and the two to compare first."""
    last = [row["seq"] for row in look.runs(last=2)]
    pair = (last[0], last[-1]) if last else ("", "")
    return {
        "title": "Runs",
        "pair": pair,
        "figures": [],
        "tables": tables(look, "runs", "models"),
    }


STEPS = ("recover", "load model", "read", "forward", "compute", "decide", "write graph")
HEAVY = ("calibration_scores", "watch", "timings", "notes", "project")


def one_run(look: Look, row: dict[str, Any]) -> Values:
    """One run: timings per step and its whole record, with the hash of the weights."""
    steps = in_order(row["timings"] or {})
    timing = Figure(
        "timings",
        "Seconds per step",
        "Where the time of this run went.",
        list(steps),
        "",
        "seconds",
        [Line("seconds", list(steps.values()), "accent", "bars")],
    )
    record = [(title_of(name), readable(name, row[name])) for name in row if name not in HEAVY]
    weights = {one["version"]: one["manifest"].get("weights_sha256") for one in look.models()}
    record.append(("weights", weights.get(row["model"]) or "–"))
    return {
        "title": f"Run {row['seq']}",
        "words": f"{row['n_evaluated']:,} nodes got their sets by {row['rule']} at alpha = "
        f"{row['alpha']:g}, with {row['n_calibration']:,} calibration nodes.",
        "notes": row["notes"] or [],
        "record": record,
        "figures": [timing],
    }


def compare(one: dict[str, Any], two: dict[str, Any]) -> Values:
    """What differs between two runs."""
    names = [name for name in one if name not in HEAVY]
    different = [
        (title_of(name), readable(name, one[name]), readable(name, two[name]))
        for name in names
        if one[name] != two[name]
    ]
    different.extend(
        (f"seconds: {step}", _seconds(one, step), _seconds(two, step))
        for step in in_order((one["timings"] or {}) | (two["timings"] or {}))
    )
    same = [name for name in names if one[name] == two[name]]
    alike = "config" in same and "model" in same
    return {
        "title": f"Run {one['seq']} and run {two['seq']}",
        "words": "Same settings and same model."
        if alike
        else "Settings or model differ: look at config and model below.",
        "a": one["seq"],
        "b": two["seq"],
        "differences": different,
        "same": ", ".join(map(title_of, same)) or "nothing",
        "figures": [],
    }


def in_order(steps: dict[str, float]) -> dict[str, float]:
    """Return the seconds of a run's steps as the run takes them.

    >>> in_order({"decide": 0.2, "read": 0.1})
    {'read': 0.1, 'decide': 0.2}
    """
    place = {step: i for i, step in enumerate(STEPS)}
    return dict(sorted(steps.items(), key=lambda one: place.get(one[0], len(STEPS))))


def title_of(name: str) -> str:
    """Return a column's name as words.

    >>> title_of("watermark_to_ns"), title_of("n_already_known"), title_of("seq")
    ('watermark to', 'already known', 'run')
    """
    if name == "seq":
        return "run"
    return name.removesuffix("_ns").removeprefix("n_").replace("_", " ")


def _seconds(row: dict[str, Any], step: str) -> str:
    found = (row["timings"] or {}).get(step)
    return "–" if found is None else f"{found:.3f}"


def node(found: Explanation | None, asked: str, hint: str = "") -> Values:
    """One node: set, p-values, neighbours, record."""
    return {
        "title": "Node" if found is None else f"Node {found.key}",
        "asked": asked,
        "found": found,
        "picture": _picture(found) if found else [],
        "record": record_of(found) if found else [],
        "state": state_words(found) if found else "",
        "hint": hint,
        "figures": [],
    }


def _picture(found: Explanation) -> list[dict[str, Any]]:
    """Neighbours on an ellipse around the node."""
    around = found.neighbours or ()
    placed = []
    for i, one in enumerate(around):
        turn = 2 * math.pi * i / len(around) - math.pi / 2
        far = 1.0 if len(around) <= 12 or i % 2 == 0 else 0.68
        if one["class"] is not None:
            kind, said = "known", f"{one['key']}: {one['class']}"
        elif one["set"] is not None:
            names = f"may be {', '.join(one['set'])}" if one["set"] else "no class conforms"
            kind, said = "set", f"{one['key']}: {names}"
        else:
            kind, said = "none", f"{one['key']}: nothing known"
        placed.append(
            {
                "x": round(155 * far * math.cos(turn), 1),
                "y": round(100 * far * math.sin(turn), 1),
                "kind": kind,
                "words": said,
                "label": one["key"][:10],
                "key": one["key"],
            }
        )
    return placed


def export_chain(look: Look) -> str:
    """Return the whole chain as JSON lines, oldest entry first."""
    from sqlalchemy import select

    from ringfence.connector.tables import audit

    query = select(audit).where(audit.c.project == look.project).order_by(audit.c.n)
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in look.rows(query))
