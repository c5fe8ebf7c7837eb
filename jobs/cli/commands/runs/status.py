"""`ringfence status`: show a project at a glance, only from the audit store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringfence.connector.times import format_time
from ringfence.jobs.cli.console import print_report, say, say_sentence, table
from ringfence.jobs.cli.coverage_table import print_coverage, say_verdict
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.connector.store.queries.records import ModelRecord
    from ringfence.jobs.views.status import Status


def status(config: Config = None, as_json: AsJson = False) -> None:
    """Show models, runs, coverage and quarantine, as the audit store has them."""
    from ringfence.jobs.config.load import load
    from ringfence.jobs.project.audit_store import open_audit
    from ringfence.jobs.views.status import read_status

    settings = load(config)
    with open_audit(settings) as store:
        current = read_status(store, settings.project)
    print_report(current, as_json, print_status)


def print_status(current: Status) -> None:
    """Show models, the last runs, coverage, quarantine and the schedule."""
    from ringfence.jobs.views.promise import late_classes_of_run, promise_of_run, shift_of_run

    say(
        f"Project {current.project}: read up to {current.watermark}; "
        f"{current.chain_entries} audit entries."
    )
    if current.sample is not None:
        say_sentence(current.sample.sentence)
    for model in current.models:
        if model.state == "active":
            say(f"Active model: {model.version}.")
    for sentence in current.not_beaten:
        say_sentence(sentence)
    if current.runs:
        say(f"Promise in force: {promise_of_run(current.runs[-1])}.")
        for note in late_classes_of_run(current.runs[-1]):
            say(f"{note[0].upper()}{note[1:]}.")
        if shift_of_run(current.runs[-1]):
            say(f"Run {current.runs[-1].seq}: {shift_of_run(current.runs[-1])}.")
    for row in current.lists:
        if row.slice in ("total", "sample"):
            say(f"{row.words[0].upper()}{row.words[1:]}.")
    if current.working:
        say(f"At work now: {current.working}.")
    if current.unfinished:
        say(
            f"{current.unfinished} run(s) are decided but not in the graph yet; "
            "the next run repairs."
        )
    _print_models(current.models)
    candidates = {model.version for model in current.models if model.state == "candidate"}
    for shadow in current.shadows:
        if shadow.version in candidates:
            say(f"Shadow {shadow.version}: {shadow.words}.")
    table(
        "Last runs",
        ("run", "decided", "state", "evaluated", "rule", "alpha", "threshold"),
        [
            (
                run.seq,
                format_time(run.decided_ns),
                run.state,
                run.n_evaluated,
                run.rule,
                run.alpha,
                run.threshold,
            )
            for run in current.runs
        ],
    )
    print_coverage(current.coverage, "Coverage", current.totals)
    say_verdict(current.verdict)
    for alarm in current.alarms:
        if alarm.state == "firing":
            say(f"ALARM {alarm.rule} since {format_time(alarm.since_ns)}: {alarm.words}")
    say(f"Evaluated: {current.evaluated:,}; class not known yet: {current.unknown:,}.")
    if current.quarantine:
        rows = [(row.reason, row.nodes) for row in current.quarantine]
        table("Quarantine", ("reason", "nodes"), rows)
    if current.schedule:
        jobs = [
            (job["job"], job["trigger"], job["state"], job["outcome"], job["next"])
            for job in current.schedule
        ]
        table("Schedule", ("job", "trigger", "state", "outcome", "next"), jobs)
        for job in current.schedule:
            if job["failures_in_a_row"]:
                say(f"Job {job['job']} failed {job['failures_in_a_row']} times in a row.")


def _print_models(models: Sequence[ModelRecord]) -> None:
    counts = ("train", "validation", "calibration")
    table(
        "Models (data: train / validation / calibration)",
        ("version", "state", "trained", "network", "classes", "data"),
        [
            (
                model.version,
                model.state,
                format_time(model.trained_ns),
                model.network,
                len(model.classes),
                " / ".join(f"{model.counts[count]:,}" for count in counts),
            )
            for model in models
        ],
    )
