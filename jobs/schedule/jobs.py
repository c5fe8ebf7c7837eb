"""What can be scheduled: each job runs on an open workspace and says in words how it went."""

from __future__ import annotations

from collections.abc import Callable

from ringfence.connector.refresh import Progress
from ringfence.connector.schedules import Ended
from ringfence.jobs.workspace import Workspace


def score(workspace: Workspace, progress: Progress) -> Ended:
    """Evaluate what is new."""
    from ringfence.jobs.scoring import run_scoring

    done = run_scoring(workspace, progress)
    finished = f"finished {', '.join(map(str, done.recovered))}; " if done.recovered else ""
    if done.seq is None:
        return Ended("done", f"{finished}nothing to evaluate, {done.waiting} waiting")
    return Ended("done", f"{finished}run {done.seq}: {done.evaluated} evaluated")


def audit(workspace: Workspace, progress: Progress) -> Ended:
    """Take in classes that became known; a broken promise is an alarm, not a failure."""
    from ringfence.jobs.auditing import run_audit

    done = run_audit(workspace, progress)
    verdict = done.total["words"] if done.total else "no runs yet"
    return Ended("alarm" if done.alarm else "done", f"{done.newly_known} newly known; {verdict}")


def reconcile(workspace: Workspace, progress: Progress) -> Ended:
    """Compare graph and SQL, and repair."""
    from ringfence.jobs.reconciling import run_reconcile

    done = run_reconcile(workspace, repair=True, progress=progress)
    return Ended("done", "nothing to repair" if done.clean else "repaired what differed")


def report(workspace: Workspace, progress: Progress) -> Ended:
    """Write the report as one page and as tables, into `[engine] folder`."""
    from ringfence.jobs.report.writing import run_report

    del progress
    folder = workspace.settings.engine.folder / "report"
    done = run_report(workspace.settings, folder, ("html", "csv"))
    return Ended("done", f"{len(done.files)} files in {done.folder}")


JOBS: dict[str, Callable[[Workspace, Progress], Ended]] = {
    "score": score,
    "audit": audit,
    "reconcile": reconcile,
    "report": report,
}
