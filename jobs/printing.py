"""How each command's report looks to a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringfence.jobs.display import print_json, say, table
from ringfence.jobs.printing_coverage import coverage, verdict
from ringfence.jobs.schedule.state import show_schedule

if TYPE_CHECKING:
    from ringfence.jobs.auditing import AuditReport
    from ringfence.jobs.doctor import Finding
    from ringfence.jobs.explain import Explanation
    from ringfence.jobs.init import Proposal
    from ringfence.jobs.reconciling import ReconcileReport
    from ringfence.jobs.report.writing import ReportFiles
    from ringfence.jobs.rescoring import RescoreReport
    from ringfence.jobs.sample_graph import SampleReport
    from ringfence.jobs.scoring import RunReport
    from ringfence.jobs.status import Status
    from ringfence.jobs.training import TrainReport
    from ringfence.jobs.verifying import Verification


def show(report: Any, as_json: bool, as_text: Callable[[], None]) -> None:
    """Print a report one way or the other."""
    if as_json:
        print_json(report)
    else:
        as_text()


def training(done: TrainReport) -> None:
    """Show what `ringfence train` did."""
    say(
        f"Trained {done.network}, version {done.version}, on {done.train:,} of {done.nodes:,} "
        f"nodes in {done.epochs} epochs; {len(done.classes)} classes."
    )
    say(
        f"Accuracy: {done.validation_accuracy:.3f} on {done.validation:,} validation nodes, "
        f"{done.calibration_accuracy:.3f} on {done.calibration:,} calibration nodes."
    )
    say(done.guarantee + ".")


def run(done: RunReport) -> None:
    """Show what `ringfence score` did."""
    if done.recovered:
        say(f"Finished runs that were left half-way: {', '.join(map(str, done.recovered))}.")
    if done.seq is None:
        say(f"Nothing to evaluate. {_leftover(done)}")
        return
    runs([done])
    for note in done.run["notes"]:
        say(f"Note: {note}.")
    say(_leftover(done))
    say("Seconds: " + ", ".join(f"{step} {time:.2f}" for step, time in done.seconds.items()))


def _leftover(done: RunReport) -> str:
    return (
        f"Waiting for their time or a neighbour: {done.waiting:,}. Class known already: "
        f"{done.already_known:,}. In quarantine: {done.quarantined:,}."
    )


def runs(reports: Sequence[RunReport], title: str = "Runs") -> None:
    """Show runs as a table."""
    table(
        title,
        (
            "run", "new", "evaluated", "rule", "NodeEx", "EdgeEx", "naive",
            "mean size", "empty", "one class",
        ),
        [
            (
                one.seq,
                one.new_nodes,
                one.evaluated,
                one.run["rule"],
                one.run["threshold_node"],
                one.run["threshold_edge"],
                one.run["threshold_naive"],
                one.mean_size,
                one.sizes.get(0, 0),
                one.sizes.get(1, 0),
            )
            for one in reports
        ],
    )  # fmt: skip


def audit(done: AuditReport, title: str = "Coverage") -> None:
    """Show what `ringfence audit` found."""
    coverage(done.rows, title)
    verdict(done.rows)
    if done.changed:
        say(f"{done.changed} classes have changed since they were noticed; both values are kept.")
    for one in done.alarms:
        if one.state in {"firing", "pending"}:
            say(f"Alarm {one.rule} is {one.state}: {one.words}.")


def status(found: Status) -> None:
    """Show `ringfence status`."""
    say(
        f"Project {found.project}: read up to {found.watermark}; "
        f"{found.chain_entries} audit entries."
    )
    if found.working:
        say(f"At work now: {found.working}.")
    if found.unfinished:
        say(
            f"{found.unfinished} run(s) are decided but not in the graph yet; the next run repairs."
        )
    table(
        "Models",
        ("version", "trained", "network", "classes", "train", "validation", "calibration"),
        [
            (m["version"], m["trained"], m["network"], len(m["classes"]), m["train"],
             m["validation"], m["calibration"])
            for m in found.models
        ],
    )  # fmt: skip
    table(
        "Last runs",
        ("run", "decided", "state", "evaluated", "rule", "alpha", "threshold", "calibration"),
        [
            (r["seq"], r["decided"], r["state"], r["n_evaluated"], r["rule"], r["alpha"],
             r["threshold"], r["n_calibration"])
            for r in found.runs
        ],
    )  # fmt: skip
    coverage(found.coverage, "Coverage")
    say(f"Evaluated: {found.evaluated:,}; class not known yet: {found.unknown:,}.")
    if found.quarantine:
        rows = [(one["reason"], one["nodes"]) for one in found.quarantine]
        table("Quarantine", ("reason", "nodes"), rows)
    show_schedule(found.schedule)


def reconciliation(done: ReconcileReport) -> None:
    """Show `ringfence reconcile`."""
    if done.clean:
        say("Graph, audit store and mirror agree; nothing to repair.")
        return
    change = done.mirror
    rows = [
        ("runs decided but not in the graph", len(done.finished_runs)),
        ("nodes that were missed", change.missed),
        ("nodes that were deleted", change.deleted),
        ("nodes whose features or class changed", change.changed),
        ("relationships that were missed", change.edges_missed),
        ("relationships that were deleted", change.edges_deleted),
        *((f"sets: {kind}", count) for kind, count in done.projections.items()),
    ]
    table("Differences", ("what", "count"), [row for row in rows if row[1]])
    for one in done.examples[:5]:
        say(f"  {one.kind}: {one.node_key} (run {one.seq})")
    say("Repaired." if done.repaired else "Nothing was changed. Next: ringfence reconcile --repair")


def verification(done: Verification) -> None:
    """Show `ringfence verify`."""
    say(
        f"Checked {done.entries} chain entries, {done.runs} runs and {done.predictions:,} "
        f"predictions; the graph remembers entry {done.anchored or 'none'}."
    )
    for problem in done.problems:
        say(f"PROBLEM: {problem}")
    if not done.problems:
        say("Everything is as it was decided.")


def rescores(done: RescoreReport) -> None:
    """Show `ringfence rescore`."""
    rows = [(key, ", ".join(set_) or "no class conforms") for key, set_ in done.sets.items()]
    table(f"Later looks ({done.reason})", ("node", "set"), rows)
    say(done.guarantee[:1].upper() + done.guarantee[1:] + ".")


def explanation(found: Explanation) -> None:
    """Show `ringfence explain`."""
    from ringfence.jobs.explain import record_of, state_words

    say(f"Node {found.key}: {found.words}.")
    table(
        f"p-values (alpha = {found.alpha:g})",
        ("class", "p", "in the set"),
        [(one["class"], one["p"], "yes" if one["in_set"] else "no") for one in found.p_values],
    )
    say(state_words(found))
    table("Record", ("what", "value"), record_of(found))
    if found.neighbours is None:
        say("The graph could not be asked for neighbours.")
    if found.neighbours:
        rows = [
            (one["key"], one["class"] or "–", _set_words(one["set"])) for one in found.neighbours
        ]
        table("Neighbours", ("key", "class", "set"), rows)


def _set_words(names: Sequence[str] | None) -> str:
    return "–" if names is None else ", ".join(names) or "no class conforms"


def report(done: ReportFiles) -> None:
    """Show `ringfence report`."""
    say(f"Wrote {len(done.files)} file(s), {done.bytes // 1024:,} kB, to {done.folder}")
    for path in done.files:
        say(f"  {path}")


def findings(found: Sequence[Finding]) -> None:
    """Show `ringfence doctor`."""
    marks = {"ok": "ok", "warning": "WARNING", "error": "ERROR"}
    table("Findings", ("", "what", "fix"), [(marks[f.level], f.text, f.fix) for f in found])


def migrations(done: Sequence[str]) -> None:
    """Show `ringfence migrate`."""
    for line in done or ["Both stores are up to date; nothing to do."]:
        say(line)


def proposal(found: Proposal, output: Path) -> None:
    """Show `ringfence init`."""
    names = ("label", "key", "features", "class_property", "created_at", "time_kind")
    choices = [(name, getattr(found, name)) for name in names]
    table(
        f"Written to {output}",
        ("setting", "value", "why"),
        [(name, str(choice.value), choice.why) for name, choice in choices]
        + [(f"relationship {type_}", created or "no time", why)
           for type_, created, why in found.relationships],
    )  # fmt: skip
    if found.open_points:
        say(f"Check these in the file first: {', '.join(found.open_points)}.")
    say("Next: ringfence doctor")


def rows(found: Sequence[dict[str, Any]]) -> None:
    """Show the rows of a query."""
    if not found:
        say("No rows.")
        return
    table(f"{len(found)} rows", list(found[0]), [list(row.values()) for row in found])


def sample(done: SampleReport) -> None:
    """Show `ringfence sample`."""
    say(
        f"Loaded {done.nodes:,} accounts and {done.relationships:,} payments; the kind of "
        f"{done.labelled:,} is known. Label :Account, key id, features, kind, created_at."
    )
    say("Next: ringfence migrate, ringfence train, ringfence score")
