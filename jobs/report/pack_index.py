"""The first page of an audit pack: where each usual question of an auditor is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ringfence import __version__
from ringfence.connector.times import NANOSECONDS, format_time
from ringfence.jobs.lifecycle.card_page import STYLE

DAY_NS = 86_400 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class PackFacts:
    """The page's facts about a project: retention, the record's span, models, verification.

    `keep_days` and `retention_days` are settings, `removals` says in words what retention removed,
    `period` which runs the pack is about.
    """

    project: str
    retention_days: float
    first_ns: int | None
    until_ns: int
    models: int
    verification: str
    keep_days: float = 0.0
    removals: str = ""
    period: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A usual question, how it is answered, and the files that answer it."""

    ask: str
    answer: str
    files: tuple[str, ...]


QUESTIONS: tuple[Question, ...] = (
    Question(
        "Is every event logged over the whole lifetime?",
        "Every training, change of the version in use, run, coverage count, correction of a class, "
        "change of settings, alarm and mark of a person is an entry of a chain; each entry seals "
        "the one before it and the rows that it speaks of.",
        ("chain.jsonl", "tables/chain.csv", "tables/runs.csv"),
    ),
    Question(
        "Was the record changed afterwards?",
        "The chain and every row were compared when this pack was written. The same is done at any "
        "time by: ringfence verify, which compares the graph too.",
        ("verification.json", "manifest.json"),
    ),
    Question(
        "Can it be checked without trust in whoever made it?",
        "Yes: python3 verify_pack.py with the name of this archive. It needs nothing of ringfence. "
        "It compares every file, the chain, the predictions and the classes that became known, and "
        "counts coverage again.",
        ("verify_pack.py", "SHA256SUMS", "predictions.jsonl.gz", "labels.jsonl.gz", "chain.jsonl"),
    ),
    Question(
        "Who decided what, when and why?",
        "Which model version was in use since when, by whom and for which reason; who wrote each "
        "chain entry. A set itself is decided by a rule, at once for all nodes of a run; people "
        "mark nodes and say what came out, which changes no set.",
        ("promotions.json", "tables/chain.csv", "marks.jsonl.gz"),
    ),
    Question(
        "How well does it perform?",
        "Coverage and set sizes per run and in all, by class and by group, with verdicts against "
        "the law that coverage follows where all is well; accuracy of each model with intervals.",
        (
            "report.html",
            "coverage.json",
            "tables/coverage-run.csv",
            "tables/coverage-total.csv",
            "tables/classes.csv",
            "tables/groups.csv",
            "tables/models.csv",
        ),
    ),
    Question(
        "What are its limits, and on what was it trained?",
        "Each model's card: data and time span, classes and their counts, promise, known limits, "
        "drift since.",
        ("model-cards/",),
    ),
    Question(
        "Can the random part of a set be guessed or chosen?",
        "Each node has one random number, a keyed hash of its key. The seed key is in no pack; the "
        "digest in each model's card names it. Whoever is given the key can recompute every number "
        "(docs/audit.md); without it nobody can.",
        ("model-cards/",),
    ),
    Question(
        "Is it watched, and what happens when it goes wrong?",
        "Rules of alarms and their states, every change of an alarm and who was told, drift of the "
        "scores, nodes that could not be used.",
        (
            "tables/alarms.csv",
            "tables/alarm-events.csv",
            "tables/drift.csv",
            "tables/quarantine.csv",
        ),
    ),
    Question(
        "Were classes corrected later?",
        "Classes of calibration nodes that changed or were withdrawn, and when that was noticed.",
        ("tables/corrections.csv",),
    ),
    Question(
        "Was anything removed, and what?",
        "Runs older than the configured period lose the scores of their nodes, the p-values of "
        "excluded classes and their rows of the worklist. Each removal is a chain entry with its "
        "period and digests; keys, sets, classes and coverage stay.",
        ("tables/removals.csv", "chain.jsonl"),
    ),
    Question(
        "Under which settings does it run?",
        "The configuration as it stands, without secrets; what changed between runs stands in the "
        "chain under the kind configuration.",
        ("configuration.json", "tables/schedule.csv"),
    ),
)


def index_page(facts: PackFacts, files: Sequence[str]) -> str:
    """Return the page."""
    title = escape(f"Audit pack of project {facts.project}")
    until = format_time(facts.until_ns) if facts.until_ns else "no entry yet"
    rows = "\n".join(
        f"<tr><th scope=row>{escape(question.ask)}</th><td>{escape(question.answer)}<br>"
        f"{_links(question.files, files)}</td></tr>"
        for question in QUESTIONS
    )
    listed = "\n".join(f'<li><a href="{escape(name)}">{escape(name)}</a></li>' for name in files)
    return (
        f"<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>{title}</title>\n"
        f'<meta name=viewport content="width=device-width">\n<style>{STYLE}</style>\n'
        f"<h1>{title}</h1>\n<p>The record up to {escape(until)}, {facts.models} model versions, "
        f"written by ringfence {escape(__version__)}. {escape(facts.period)}</p>\n"
        f"<p>{escape(facts.verification)}</p>\n"
        f"<h2>Where each question is answered</h2>\n<table>\n{rows}\n"
        f"<tr><th scope=row>How long is it kept?</th><td>{escape(describe_retention(facts))}</td>"
        f"</tr>\n</table>\n<h2>All files</h2>\n<ul>\n{listed}\n</ul>\n"
        "<p>SHA256SUMS has the SHA-256 of every other file.</p>\n</html>\n"
    )


def describe_retention(facts: PackFacts) -> str:
    """Say how long the record is kept, and how far it reaches back.

    >>> facts = PackFacts("p", 0, DAY_NS, 11 * DAY_NS, 1, "")
    >>> describe_retention(facts)
    'Nothing on record was removed. The record reaches back 10 days.'
    """
    kept = facts.removals or "Nothing on record was removed."
    if facts.keep_days:
        kept += (
            f" Details of runs are removed {facts.keep_days:,.6g} days after the run "
            "([audit] keep_days)."
        )
    if facts.first_ns is None:
        return f"{kept} The record has no entry yet."
    days = (facts.until_ns - facts.first_ns) / DAY_NS
    reach = f"The record reaches back {days:,.0f} days."
    if not facts.retention_days:
        return f"{kept} {reach}"
    return (
        f"{kept} It must be kept for {facts.retention_days:,.0f} days ([audit] retention_days). "
        f"{reach}"
    )


def _links(wanted: Sequence[str], files: Sequence[str]) -> str:
    names = [
        name
        for path in wanted
        for name in files
        if name == path or (path.endswith("/") and name.startswith(path) and name.endswith(".html"))
    ]
    return ", ".join(f'<a href="{escape(name)}">{escape(name)}</a>' for name in names)
