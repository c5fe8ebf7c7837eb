"""`ringfence score`: evaluate what is new and write its prediction sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringfence.jobs.cli.console import open_with_progress, print_report, say, table
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.scoring.score import RunReport
    from ringfence.jobs.scoring.shadow import ShadowReport

RUN_COLUMNS = ("run", "new", "evaluated", "rule", "NodeEx", "EdgeEx", "naive", "mean size",
               "empty", "one class")  # fmt: skip  # as the table's head reads


def score(config: Config = None, as_json: AsJson = False) -> None:
    """Evaluate the nodes that are new since the last run and write their prediction sets."""
    with open_with_progress(config, "scoring") as (workspace, report):
        from ringfence.jobs.scoring.score import run_scoring

        done = run_scoring(workspace, report)
    print_report(done, as_json, print_run)


def print_run(done: RunReport) -> None:
    """Show what one run did, and what is left to evaluate."""
    if done.recovered:
        say(f"Finished runs that were left half-way: {', '.join(map(str, done.recovered))}.")
    if done.seq is None:
        say(f"Nothing to evaluate. {_describe_leftover(done)}")
        return
    print_runs([done])
    for note in done.run.notes if done.run else ():
        say(f"Note: {note}.")
    if done.shadow is not None:
        say(_describe_shadow(done.shadow))
    say(_describe_leftover(done))
    say("Seconds: " + ", ".join(f"{step} {time:.2f}" for step, time in done.seconds.items()))


def print_runs(runs: Sequence[RunReport], title: str = "Runs") -> None:
    """Show runs as a table, a row each."""
    rows = [
        (
            run.seq,
            run.new_nodes,
            run.evaluated,
            run.run.rule,
            run.run.threshold_node,
            run.run.threshold_edge,
            run.run.threshold_naive,
            run.mean_size,
            run.sizes.get(0, 0),
            run.sizes.get(1, 0),
        )
        for run in runs
        if run.run is not None
    ]
    table(title, RUN_COLUMNS, rows)


def _describe_shadow(shadow: ShadowReport) -> str:
    if shadow.failed is not None:
        return f"Shadow {shadow.version}: no sets, the run is whole without them: {shadow.failed}."
    return (
        f"Shadow {shadow.version}: {shadow.sets:,} sets, average size {shadow.mean_size:.2f}, "
        f"{shadow.n_calibration:,} calibration nodes; in SQL alone."
    )


def _describe_leftover(done: RunReport) -> str:
    return (
        f"Waiting for their time or a neighbour: {done.waiting:,}. Class known already: "
        f"{done.already_known:,}. In quarantine: {done.quarantined:,}."
        + (f" Calibration nodes corrected: {done.corrected:,}." if done.corrected else "")
    )
