"""ringfence under Airflow 3: score, then audit and verify, once an hour.

Put this file into the DAGs folder. ringfence has an environment of its own, since its requirements
and Airflow's clash: PATH_TO_RINGFENCE names its program, and RINGFENCE_CONFIG the project's file.
Secrets come from the environment of the workers.

    exit code               task
    0  fine                 success; the report is the task's XCom
    1  an error             failed, and tried again: each node is evaluated once, so a retry is safe
    2  wrong options        failed at once
    4  an alarm             failed at once: coverage (audit), or a changed record (verify); trying
                            again would find the same
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import datetime, timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

PROGRAM = os.environ.get("PATH_TO_RINGFENCE", "ringfence")
NOT_TRIED_AGAIN = {2: "wrong options", 4: "an alarm"}
RETRY_SECONDS = int(os.environ.get("SECONDS_BETWEEN_TRIES", "60"))


def run_ringfence(*words: str) -> dict:
    """Run a verb and return its report; raise what Airflow makes a task's state of."""
    done = subprocess.run([PROGRAM, *words, "--json"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    said = (done.stderr or done.stdout).strip()[-2000:]
    if reason := NOT_TRIED_AGAIN.get(done.returncode):
        raise AirflowFailException(f"ringfence {words[0]}: {reason}: {said}")
    raise AirflowException(f"ringfence {words[0]} ended with {done.returncode}: {said}")


@dag(
    dag_id="ringfence",
    schedule=timedelta(hours=1),
    start_date=datetime(2026, 1, 1),
    catchup=False,  # a run evaluates all that is new: there is nothing to make up for
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(seconds=RETRY_SECONDS)},
)
def ringfence_dag():
    """Score what is new; then compare coverage with the promise, and check the record."""

    @task
    def score() -> dict:
        report = run_ringfence("score")
        return {"run": report["seq"], "evaluated": report["evaluated"]}

    @task
    def audit() -> dict:
        report = run_ringfence("audit")
        return {"newly_known": report["newly_known"]}

    @task
    def verify() -> dict:
        report = run_ringfence("verify")
        return {"entries": report["entries"], "predictions": report["predictions"]}

    score() >> [audit(), verify()]


ringfence = ringfence_dag()
