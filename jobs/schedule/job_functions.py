"""What each scheduled job does: it works on an open project and returns how it ended.

A function has the name of its entry in `jobs.config.scheduled_jobs.JOBS`, by which the runner finds
it. Each imports its verb when it is called: no job loads the code of another, nor torch with it.
"""

from __future__ import annotations

from ringfence.connector.progress import Progress
from ringfence.connector.store.schedule import Ended
from ringfence.jobs.project.workspace import Workspace


def score(workspace: Workspace, progress: Progress) -> Ended:
    """Evaluate what is new."""
    from ringfence.jobs.scoring.score import run_scoring

    done = run_scoring(workspace, progress)
    finished = f"finished {', '.join(map(str, done.recovered))}; " if done.recovered else ""
    if done.seq is None:
        return Ended("done", f"{finished}nothing to evaluate, {done.waiting} waiting")
    return Ended("done", f"{finished}run {done.seq}: {done.evaluated} evaluated")


def audit(workspace: Workspace, progress: Progress) -> Ended:
    """Record classes that became known; a broken promise is an alarm, not a failure."""
    from ringfence.jobs.auditing.audit import run_audit

    done = run_audit(workspace, progress)
    verdict = done.verdict.words if done.verdict else "no runs yet"
    return Ended("alarm" if done.alarm else "done", f"{done.newly_known} newly known; {verdict}")


def reconcile(workspace: Workspace, progress: Progress) -> Ended:
    """Compare graph and SQL, and repair."""
    from ringfence.jobs.integrity.reconcile import run_reconcile

    done = run_reconcile(workspace, repair=True, progress=progress)
    return Ended("done", "nothing to repair" if done.clean else "repaired what differed")


def verify(workspace: Workspace, progress: Progress) -> Ended:
    """Check that what is on record is as it was decided; anything else is a failure.

    What came since the newest checkpoint and a sample of the rest; everything where that is due, or
    where the alarm of an earlier verification fires.
    """
    from ringfence.jobs.integrity.alarm import describe_problems, raise_record_alarm
    from ringfence.jobs.integrity.checkpoint.seal import verify_and_seal

    full_days = workspace.settings.audit.verify_full_days
    done = verify_and_seal(workspace, progress, full_days=full_days)
    raise_record_alarm(workspace, done.problems, progress)
    if done.problems:
        return Ended("failed", describe_problems(done.problems))
    if done.since is None:
        words = f"{done.entries} chain entries and {done.predictions} predictions fit"
        return Ended("done", f"full: {words}")
    since = done.since
    words = f"{since.runs} new and {since.drawn} of {since.of} older runs fit"
    return Ended("done", f"since entry {since.entry}: {done.entries} chain entries, {words}")


def verify_quick(workspace: Workspace, progress: Progress) -> Ended:
    """Compare blocks of rows with the chain by their digests; a difference is a failure.

    What it finds raises the alarm of the whole verification, which alone can end it: that one looks
    at more.
    """
    from ringfence.jobs.integrity.alarm import describe_problems, raise_record_alarm
    from ringfence.jobs.integrity.verify import run_verification

    done = run_verification(workspace, quick=True)
    if done.problems:
        raise_record_alarm(workspace, done.problems, progress)
        return Ended("failed", describe_problems(done.problems))
    return Ended("done", f"{done.entries} chain entries and {done.predictions} predictions fit")


def prune(workspace: Workspace, progress: Progress) -> Ended:
    """Remove the details of old runs, where a period is configured."""
    from ringfence.jobs.retention.prune import run_prune

    done = run_prune(workspace, progress, turns=1)
    if done.before_ns is None:
        return Ended("done", "nothing is removed: [audit] keep_days is 0")
    words = f"details of {done.nodes} nodes of {len(done.runs)} old runs removed"
    if not done.left:
        return Ended("done", words)
    retry = workspace.settings.schedule.retry_seconds  # what is due meanwhile comes first
    return Ended("done", f"{words}, {done.left} nodes left for the next turn", retry)


def report(workspace: Workspace, progress: Progress) -> Ended:
    """Write the report as one page and as tables, into `[engine] folder`."""
    from ringfence.jobs.report.write import run_report

    del progress
    folder = workspace.settings.engine.folder / "report"
    done = run_report(workspace.settings, folder, ("html", "csv"))
    return Ended("done", f"{len(done.files)} files in {done.folder}")


def retrain(workspace: Workspace, progress: Progress) -> Ended:
    """Train a new version in a process of its own, if one is due by the configuration."""
    from ringfence.connector.extras import require_extra
    from ringfence.jobs.lifecycle.retrain_need import need_on_record
    from ringfence.jobs.schedule.child import run_in_child

    need = need_on_record(workspace)
    if not need.due:
        return Ended("done", f"no training: {need.words}")
    require_extra("train", "to train a model")
    return run_in_child(
        "ringfence.jobs.training.retrain",
        "retrain_project",
        (workspace.settings, need.words),
        progress,
    )
