"""ringfence under Prefect 3: score, then audit and verify.

ringfence has an environment of its own, since its requirements and Prefect's may clash:
PATH_TO_RINGFENCE names its program, and RINGFENCE_CONFIG the project's file. An error is tried
again, which is safe, since each node is evaluated once; an alarm (exit code 4) is not.
"""

import json
import os
import subprocess

from prefect import flow, task

PROGRAM = os.environ.get("PATH_TO_RINGFENCE", "ringfence")
NOT_TRIED_AGAIN = (2, 4)
RETRY_SECONDS = float(os.environ.get("SECONDS_BETWEEN_TRIES", "60"))


class Alarm(RuntimeError):
    """Coverage that is too low, a changed record, or options that a verb does not have."""


def is_worth_a_retry(_task, _run, state) -> bool:
    """Whether trying again may help: an alarm would be the same."""
    return not isinstance(state.result(raise_on_failure=False), Alarm)


@task(retries=3, retry_delay_seconds=RETRY_SECONDS, retry_condition_fn=is_worth_a_retry)
def run_ringfence(verb: str) -> dict:
    """Run a verb and return its report."""
    done = subprocess.run([PROGRAM, verb, "--json"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    said = (done.stderr or done.stdout).strip()[-2000:]
    kind = Alarm if done.returncode in NOT_TRIED_AGAIN else RuntimeError
    raise kind(f"ringfence {verb} ended with {done.returncode}: {said}")


@flow(name="ringfence")
def ringfence_flow() -> dict:
    """Score what is new; then compare coverage with the promise, and check the record."""
    scored = run_ringfence.with_options(name="score")("score")
    audited = run_ringfence.with_options(name="audit")("audit", return_state=True)
    verified = run_ringfence.with_options(name="verify")("verify", return_state=True)
    for state in (audited, verified):
        state.result()  # raises where it failed, once both have been tried
    return {"evaluated": scored["evaluated"]}


if __name__ == "__main__":
    ringfence_flow.serve(name="hourly", cron="0 * * * *")
