"""Today: verdict, last and next run, backlog, quarantine, alarms, schedule."""

from __future__ import annotations

from ringfence.connector.store.queries.records import RunCoverage
from ringfence.connector.times import format_time
from ringfence.jobs.auditing.shortfalls import describe_shortfall, find_shortfalls
from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence
from ringfence.jobs.dashboard.view import PageView
from ringfence.jobs.lifecycle.comparison import warnings_of
from ringfence.jobs.views import charts
from ringfence.jobs.views.promise import late_classes_of_run, promise_of_run, shift_of_run
from ringfence.jobs.views.sample import read_sample_status

MAX_SLICES = 8
Fact = tuple[str, str, str]
"""Name, value and note."""


def build(view: PageView) -> Values:
    """Return the verdict over all runs, the facts of the day, and what needs attention."""
    queries = view.queries
    total = queries.verdict()
    named = [*queries.named("class"), *queries.named("group")]
    short = find_shortfalls(named)
    return {
        "title": PAGE.title,
        "sample": _sample(queries),
        "shortfalls": [as_sentence(describe_shortfall(row)) for row in short],
        "slices": [_slice_line(row, row in short) for row in _worst(named, short)],
        "slice_count": sum(1 for row in named if row.known),
        "verdict": total.verdict if total else "not enough known yet",
        "sentence": as_sentence(total.words) if total else _first_step(queries),
        "bias": as_sentence(total.bias_words) if total else "",
        "facts": _facts(queries),
        "range": view.range(),
        "figures": [charts.coverage_per_run(view.series.coverage("run"))],
        "tables": view.tables("alarms", "quarantine", "schedule"),
    }


def _sample(queries: Queries) -> Values | None:
    """The verdict on the audit sample, which stands first: who gets labelled can't bias it."""
    sample = read_sample_status(queries)
    if sample is None:
        return None
    return {"verdict": sample.verdict, "sentence": as_sentence(sample.sentence),
            "unknown": sample.counts.unknown}  # fmt: skip


def _first_step(queries: Queries) -> str:
    """What to type while there is no verdict."""
    if not queries.models():
        return "Nothing is trained yet. Run: ringfence train"
    if not queries.runs(last=1):
        return "No node has a set yet. Run: ringfence score"
    return "No audit yet. Run: ringfence audit"


def _worst(named: list[RunCoverage], short: list[RunCoverage]) -> list[RunCoverage]:
    """Those that fall short, then others with known nodes, furthest below the promise first."""
    others = [row for row in named if row.known and row not in short]
    others.sort(key=lambda row: (row.above_promise, row.name))
    return [*short, *others][:MAX_SLICES]


def _slice_line(row: RunCoverage, short: bool) -> Values:
    verdict = "far below" if short else row.verdict
    return {
        "kind": row.slice, "name": row.name, "coverage": row.coverage, "promised": 1 - row.alpha,
        "own": row.own_promise, "known": row.known, "size": row.mean_size, "verdict": verdict,
    }  # fmt: skip


def _facts(queries: Queries) -> list[Fact]:
    counts = queries.counts()
    unusable = sum(reason.nodes for reason in queries.quarantine())
    return [
        _last_run(queries),
        _next_run(queries),
        _promise(queries),
        *_late_classes(queries),
        *_shift(queries),
        *_not_beaten(queries),
        ("Evaluated", f"{counts.evaluated:,}", "once each, ever"),
        ("Class not known yet", f"{counts.unknown:,}", f"{counts.known:,} are known"),
        ("In quarantine", f"{unusable:,}", "nodes that can't be used"),
        _last_audit(queries),
    ]


def _last_run(queries: Queries) -> Fact:
    runs = queries.runs(last=1)
    if not runs:
        return "Last run", "none", ""
    return "Last run", str(runs[-1].seq), format_time(runs[-1].decided_ns)


def _promise(queries: Queries) -> Fact:
    runs = queries.runs(last=1)
    if not runs:
        return "Promise", "none", ""
    whom, _, what = promise_of_run(runs[-1]).partition(": ")
    return "Promise", whom, what


def _late_classes(queries: Queries) -> list[Fact]:
    """How late classes come and what waits for them, as the last run has it in its notes."""
    runs = queries.runs(last=1)
    words = late_classes_of_run(runs[-1]) if runs else []
    return [("Classes", "come late", " ".join(map(as_sentence, words)))] if words else []


def _shift(queries: Queries) -> list[Fact]:
    runs = queries.runs(last=1)
    words = shift_of_run(runs[-1]) if runs else ""
    return [("New nodes", "differ", as_sentence(words))] if words else []


def _not_beaten(queries: Queries) -> list[Fact]:
    """Which baselines the model in use, or the newest candidate, does not beat on the holdout."""
    states = [(model.version, model.state) for model in queries.models()]
    said = warnings_of(queries.comparisons(), states)
    notes = " ".join(as_sentence(sentence) for sentence in said)
    return [("Model", "not better", notes)] if said else []


def _next_run(queries: Queries) -> Fact:
    due_ns = {job.job: job.due_ns for job in queries.schedule()}.get("score")
    lease = queries.lease()
    working = f"at work now: {lease.working}" if lease and lease.working else ""
    return "Next run", format_time(due_ns) if due_ns else "not scheduled", working


def _last_audit(queries: Queries) -> Fact:
    mark = queries.audit_mark()
    if mark is None:
        return "Last audit", "never", ""
    day, time = format_time(mark.audited_ns).split()
    return "Last audit", day, time


PAGE = Page("today", "Today", "/", "today.html", build)
