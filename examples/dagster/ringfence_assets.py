"""ringfence under Dagster: prediction sets as an asset, coverage and integrity as its checks.

ringfence has an environment of its own, since its requirements and Dagster's may clash:
PATH_TO_RINGFENCE names its program, and RINGFENCE_CONFIG the project's file.

    exit code            asset                            check
    0  fine              materialized, with its counts    passed
    1  an error          failed, tried again: each node is evaluated once, so a retry is safe
    2  wrong options     failed at once
    4  an alarm          -                                not passed: coverage, or a changed record
"""

import json
import os
import subprocess

import dagster as dg

PROGRAM = os.environ.get("PATH_TO_RINGFENCE", "ringfence")
WRONG_OPTIONS, ALARM = 2, 4
RETRY_SECONDS = float(os.environ.get("SECONDS_BETWEEN_TRIES", "60"))
RETRIES = dg.RetryPolicy(max_retries=3, delay=RETRY_SECONDS)


def run_ringfence(*words: str) -> tuple[int, dict]:
    """Run a verb; return its exit code, 0 or that of an alarm, and its report."""
    done = subprocess.run([PROGRAM, *words, "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, ALARM):
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise dg.Failure(
            f"ringfence {words[0]} ended with {done.returncode}: {said}",
            allow_retries=done.returncode != WRONG_OPTIONS,
        )
    return done.returncode, json.loads(done.stdout)


@dg.asset(retry_policy=RETRIES, kinds={"neo4j"})
def prediction_sets() -> dg.MaterializeResult:
    """The classes that each new node could be."""
    _, report = run_ringfence("score")
    return dg.MaterializeResult(
        metadata={"evaluated": report["evaluated"], "waiting": report["waiting"]}
    )


@dg.asset_check(asset=prediction_sets, retry_policy=RETRIES)
def coverage() -> dg.AssetCheckResult:
    """Whether the promise was kept, by the classes that became known."""
    code, report = run_ringfence("audit")
    return dg.AssetCheckResult(passed=code == 0, metadata={"newly_known": report["newly_known"]})


@dg.asset_check(asset=prediction_sets, retry_policy=RETRIES)
def integrity() -> dg.AssetCheckResult:
    """Whether everything on record is as it was decided."""
    code, report = run_ringfence("verify")
    return dg.AssetCheckResult(
        passed=code == 0,
        metadata={"entries": report["entries"], "problems": list(report["problems"])[:20]},
    )


hourly = dg.ScheduleDefinition(
    name="hourly",
    target=dg.AssetSelection.assets(prediction_sets),
    cron_schedule="0 * * * *",
)

defs = dg.Definitions(
    assets=[prediction_sets], asset_checks=[coverage, integrity], schedules=[hourly]
)
