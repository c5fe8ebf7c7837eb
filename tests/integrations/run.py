"""The examples for other schedulers, run in the real packages (`make test-integrations`).

Each example has an environment of its own under `build/integrations`, made from its lock. All work
on one project of ringfence's demo, with a real Neo4j, and call the program of this checkout. Five
things are tried with each: the first `score` fails, is tried again, and every new node gets its set
once; an untouched record passes; a p-value that was edited in the graph fails the task or check of
`verify`; an `audit` that ends with an alarm's exit code fails its own; a `score` with an unknown
option fails. None of the last three is tried again.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from neo4j import GraphDatabase

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / "build/integrations"
RINGFENCE = Path(sys.executable).with_name("ringfence")
ARRIVING = 20
SECONDS = 900

ARRIVE = """
MATCH (a:Account)-[:USES]->(d) WITH a, collect(d)[0] AS d ORDER BY a.id LIMIT $count
CREATE (b:Account)-[:USES {created_at: datetime()}]->(d)
SET b = a {.*, id: $name + '-' + toString(a.id), created_at: datetime(), kind: null}
"""
EDIT = """
MATCH ()-[r:MAY_BE]->() WITH r LIMIT 1 SET r.p = r.p / 2 RETURN elementId(r) AS id, r.p * 2 AS p
"""
RESTORE = "MATCH ()-[r:MAY_BE]->() WHERE elementId(r) = $id SET r.p = $p"

PROGRAM = """#!/bin/sh
{trick}
exec "{program}" "$@"
"""
SOUND, EDITED, ALARM, WRONG = "a sound record", "an edited record", "an alarm", "a wrong option"
TRICKS = {
    SOUND: 'if [ "$1" = score ] && [ ! -e "{marker}" ]; then '
    'touch "{marker}"; echo "error: away" >&2; exit 1; fi',
    EDITED: "",
    ALARM: 'if [ "$1" = audit ]; then "{program}" "$@"; exit 4; fi',
    WRONG: 'if [ "$1" = score ]; then exec "{program}" "$@" --no-such-option; fi',
}
"""What the program does in each case before it is ringfence's; its alarm is an exit code alone."""


@dataclass(frozen=True)
class Example:
    """An example: its folder, what it calls verify, its names of states and of a run's outcome."""

    name: str
    check: str
    success: str
    failed: str
    audit: str = "audit"
    verify: str = "verify"


EXAMPLES = (
    Example("airflow", "airflow_check.py", "success", "failed"),
    Example("dagster", "dagster_check.py", "success", "failed", "coverage", "integrity"),
    Example("prefect", "prefect_check.py", "COMPLETED", "FAILED"),
)


def make_environment(name, uv):
    """An environment from the example's lock; one of the same lock is used again."""
    lock = ROOT / "examples" / name / "requirements.lock"
    folder, digest = ENVIRONMENTS / name, hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp = folder / ".lock"
    if stamp.exists() and stamp.read_text() == digest:
        return folder / "bin/python"
    shutil.rmtree(folder, ignore_errors=True)
    run(uv, "venv", "--quiet", "--python", sys.executable, folder)
    inside = ("--quiet", "--python", folder / "bin/python")
    run(uv, "pip", "install", *inside, "--only-binary", ":all:", "--require-hashes", "-r", lock)
    stamp.write_text(digest)
    return folder / "bin/python"


def run(*command, cwd=ROOT, **more):
    """Run a command; what it prints is the reason where it fails."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RINGFENCE_")} | more
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True,
        check=False, timeout=SECONDS,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-1500:]}")
    return done.stdout


def try_example(example, python, folder, project, case):
    """Run an example once; return what it said of its tasks."""
    home = folder / example.name
    home.mkdir(exist_ok=True)
    program = home / "ringfence"
    trick = TRICKS[case].format(marker=home / "tried", program=RINGFENCE)
    program.write_text(PROGRAM.format(trick=trick, program=RINGFENCE))
    program.chmod(0o755)
    variables = {
        "PATH_TO_RINGFENCE": str(program),
        "RINGFENCE_CONFIG": str(project),
        "SECONDS_BETWEEN_TRIES": "0",
        "PYTHONPATH": str(ROOT / "examples" / example.name),
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "examples/airflow"),
        "PREFECT_HOME": str(home / "prefect"),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "DO_NOT_TRACK": "1",
    }
    if example.name == "airflow" and not (home / "airflow").exists():
        run(python.with_name("airflow"), "db", "migrate", cwd=home, **variables)
    printed = run(python, ROOT / "tests/integrations" / example.check, cwd=home, **variables)
    (line,) = [line for line in printed.splitlines() if line.startswith("OUTCOME ")]
    return json.loads(line.removeprefix("OUTCOME "))["tasks"]


def check_example(example, python, folder, project, driver):
    """Try an example in each case; return the differences from what is expected."""

    def differences(case, **failed):
        tasks = try_example(example, python, folder, project, case)
        return compare(case, expect(example, case, **failed), tasks)

    before = count_sets(driver)
    driver.execute_query(ARRIVE, count=ARRIVING, name=example.name)
    found = differences(SOUND)
    if (new := count_sets(driver) - before) != ARRIVING:
        found.append(f"{new} sets for {ARRIVING} new nodes")
    edited = driver.execute_query(EDIT).records[0]
    try:
        found += differences(EDITED, verify=True)
    finally:
        driver.execute_query(RESTORE, id=edited["id"], p=edited["p"])
    return found + differences(ALARM, audit=True) + differences(WRONG, score=True)


def expect(example, case, score=False, audit=False, verify=False):
    """State and number of tries of each task; of those after a failed `score` nothing is said."""
    states = {True: [example.failed, 1], False: [example.success, 1]}
    if score:
        return {"score": states[True]}
    return {
        "score": [example.success, 2 if case == SOUND else 1],
        example.audit: states[audit],
        example.verify: states[verify],
    }


def compare(what, expected, tasks):
    """
    >>> compare("a run", {"score": ["success", 2]}, {"score": ["failed", 1], "more": ["x", 1]})
    ["a run: score is ['failed', 1], not ['success', 2]"]
    """
    return [
        f"{what}: {name} is {tasks.get(name)}, not {state}"
        for name, state in expected.items()
        if tasks.get(name) != state
    ]


def count_sets(driver):
    query = "MATCH (:Account)-[e:EVALUATED]->(:RingfenceRun) RETURN count(e) AS n"
    return driver.execute_query(query).records[0]["n"]


def main(argv=None):
    parser = argparse.ArgumentParser(description="Run the examples in the real packages.")
    parser.add_argument("--uv", default=str(ROOT / ".venv/bin/uv"), help="the program uv")
    parser.add_argument("names", nargs="*", help="which examples; all without any")
    options = parser.parse_args(argv)
    uv = Path(shutil.which(options.uv) or options.uv).absolute()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ringfence-integrations-") as name:
        folder = Path(name)
        demo = ("--no-serve", "--nodes", "1500", "--arriving", "2", "--folder", folder / "demo")
        run(RINGFENCE, "demo", *demo, cwd=folder)
        project = folder / "demo/ringfence.toml"
        run(RINGFENCE, "neo4j", "start", "--config", project, cwd=folder)
        try:
            login = ("neo4j", "status", "--show-password", "--json", "--config", project)
            server = json.loads(run(RINGFENCE, *login, cwd=folder))
            auth = (server["user"], server["password"])
            print("| example | package | outcome |\n|---|---|---|")
            for example in EXAMPLES:
                if options.names and example.name not in options.names:
                    continue
                python = make_environment(example.name, uv)
                with GraphDatabase.driver(server["uri"], auth=auth) as driver:
                    differences = check_example(example, python, folder, project, driver)
                failed += bool(differences)
                outcome = "; ".join(differences) or "ran: retried safely, alarms are failures"
                print(
                    f"| {example.name} | {version(example.name, python)} | {outcome} |", flush=True
                )
        finally:
            run(RINGFENCE, "neo4j", "stop", "--config", project, cwd=folder)
    return int(failed > 0)


def version(name, python):
    package = {"airflow": "apache-airflow-core"}.get(name, name)
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return run(python, "-c", code).strip()


if __name__ == "__main__":
    sys.exit(main())
