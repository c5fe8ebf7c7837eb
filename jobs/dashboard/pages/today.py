"""Today: the promise, what came, what waits for a person; then alarms, quarantine, schedule."""

from __future__ import annotations

from ringfence.connector.records import StoredCoverage
from ringfence.connector.store.queries.records import RunCoverage
from ringfence.connector.times import format_time
from ringfence.jobs.auditing.shortfalls import describe_shortfall, find_shortfalls
from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence
from ringfence.jobs.dashboard.view import PageView
from ringfence.jobs.lifecycle.comparison import warnings_of
from ringfence.jobs.views import charts
from ringfence.jobs.views.next_step import find_next_step
from ringfence.jobs.views.promise import promise_of_run, shift_of_run
from ringfence.jobs.views.sample import SampleStatus, read_sample_status
from ringfence.jobs.views.today import Visits, news_line, promise_line, waiting_line

MAX_SLICES = 8
REFRESH_SECONDS = 60
VISITS = "ringfence_visits"
"""The cookie that remembers the last two visits of a person."""
Fact = tuple[str, str, str]
"""Name, value and note."""


def build(view: PageView) -> Values:
    """Return three lines, what to do next where something is broken, and the facts of the day."""
    queries = view.queries
    total = queries.verdict()
    named = [*queries.named("class"), *queries.named("group")]
    short = find_shortfalls(named)
    sample, now_ns = read_sample_status(queries), queries.now_ns()
    visits = Visits.from_text(view.cookies.get(VISITS, "")).visited(now_ns)
    verdicts = {total.verdict if total else "", sample.verdict if sample else ""}
    return {
        "title": PAGE.title,
        "refresh_seconds": REFRESH_SECONDS,
        "remember": {VISITS: visits.as_text()},
        "sample": _sample(sample),
        "lines": [
            promise_line(queries),
            news_line(queries, visits, now_ns),
            waiting_line(queries),
        ],
        "next_step": find_next_step(queries, broken="broken" in verdicts or bool(short)),
        "about_promise": [as_sentence(words) for words in _about_promise(queries, total) if words],
        "about_model": [as_sentence(words) for words in _not_beaten(queries)],
        "shortfalls": [as_sentence(describe_shortfall(row)) for row in short],
        "slices": [_slice_line(row, row in short) for row in _worst(named, short)],
        "slice_count": sum(1 for row in named if row.known),
        "facts": _facts(queries),
        "range": view.range(),
        "figures": view.marked(charts.coverage_per_run(view.series.coverage("run"))),
        "tables": view.tables("alarms", "quarantine", "schedule"),
    }


def _sample(sample: SampleStatus | None) -> Values | None:
    """The verdict on the audit sample, which stands first: who gets labelled can't bias it."""
    if sample is None:
        return None
    return {"verdict": sample.verdict, "sentence": as_sentence(sample.sentence),
            "unknown": sample.counts.unknown}  # fmt: skip


def _worst(named: list[RunCoverage], short: list[RunCoverage]) -> list[RunCoverage]:
    """Those that fall short and the next ones: furthest below the promise first."""
    others = [row for row in sorted(named, key=lambda row: row.worst_first) if row not in short]
    shown = [*short, *(row for row in others if row.known)][:MAX_SLICES]
    return sorted(shown, key=lambda row: row.worst_first)


def _slice_line(row: RunCoverage, short: bool) -> Values:
    verdict = "far below" if short else row.verdict
    return {
        "kind": row.slice, "name": row.name, "coverage": row.coverage, "promised": 1 - row.alpha,
        "own": row.own_promise, "known": row.known, "size": row.mean_size, "verdict": verdict,
    }  # fmt: skip


def _facts(queries: Queries) -> list[Fact]:
    counts = queries.counts()
    return [
        _last_run(queries),
        _next_run(queries),
        ("Evaluated", f"{counts.evaluated:,}", f"{counts.unknown:,} of unknown class"),
        _last_audit(queries),
    ]


def _last_run(queries: Queries) -> Fact:
    runs = queries.runs(last=1)
    if not runs:
        return "Last run", "none", ""
    return "Last run", str(runs[-1].seq), format_time(runs[-1].decided_ns)


def _about_promise(queries: Queries, total: StoredCoverage | None) -> list[str]:
    """What is promised to whom, how the verdict came about, and in what new nodes differ."""
    runs = queries.runs(last=1)
    return [
        f"promise: {promise_of_run(runs[-1])}" if runs else "",
        total.words if total else "",
        total.bias_words if total else "",
        shift_of_run(runs[-1]) if runs else "",
    ]


def _not_beaten(queries: Queries) -> list[str]:
    """Which baselines the model in use, or the newest candidate, does not beat on the holdout."""
    states = [(model.version, model.state) for model in queries.models()]
    return warnings_of(queries.comparisons(), states)


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
