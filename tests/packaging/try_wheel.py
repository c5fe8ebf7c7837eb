"""The wheel tried as a user would, on every Python that the machine has (`make test-wheel`).

Wheel and sdist are built from the files that git knows. For each Python from 3.11 to 3.13 a new
environment gets the locked requirements and the wheel, and nothing of this checkout: `--help`, the
demo with its own Neo4j, and the dashboard over what the demo left. A second environment gets those
of a scorer, without torch and scikit-learn: it scores nodes that came after the demo, audits and
verifies, and says what to type where it is asked to train. The table says which Pythons ran and
which are untested because the machine does not have them; below it stand how large the environments
are, the scorer's beside its goal, and how long a cold command takes in the scorer's. No step sees
variables of whoever called (`clean_environment`).
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.distribution import (
    ROOT,
    build,
    clean_environment,
    copy_of_the_tracked_files,
    run,
    sdist_files,
)

VERSIONS = ("3.11", "3.12", "3.13")
PAGES = ("", "worklist", "coverage", "runs", "metrics")
DEMO = ("demo", "--no-serve", "--nodes", "1500", "--arriving", "2", "--json")
SECONDS_FOR_A_STEP = 900
FULL_LOCK, SCORER_LOCK = "requirements.lock", "requirements-scorer.lock"
CONFIG = ".ringfence/demo/ringfence.toml"
SCORER_VERBS = (("score", "--json"), ("audit",), ("verify",), ("status",))
COLD_RUNS = 3
SCORER_GOAL_MB = 700  # of `[serve,postgres]`
NOTHING_THAT_TRAINS = """
from importlib.util import find_spec
there = [name for name in ("torch", "torch_geometric", "sklearn") if find_spec(name)]
assert not there, there
"""
ACCOUNTS_THAT_ARRIVE = """
import sys, neo4j
uri, user, password = sys.argv[1:]
with neo4j.GraphDatabase.driver(uri, auth=(user, password)) as driver:
    driver.execute_query(
        "MATCH (a:Account) WITH a ORDER BY a.id LIMIT 20 MATCH (a)-[:USES]->(d) "
        "WITH a, collect(d)[0] AS d CREATE (b:Account)-[:USES {created_at: datetime()}]->(d) "
        "SET b = a {.*, id: 'later-' + toString(a.id), created_at: datetime(), kind: null}"
    )
"""
UNTESTED = "this machine has no Python {}"


class Failed(Exception):
    """A step of the trial that did not go well, in words."""


@dataclass(frozen=True)
class Trial:
    """How one Python did."""

    version: str
    outcome: str
    facts: str
    ran: bool
    measured: tuple[str, ...] = ()

    @property
    def failed(self):
        return self.ran and self.outcome != "ran"


def find_python(version, uv):
    """The program of a Python, on the path, pyenv's or uv's; None where the machine has none."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return Path(sys.executable).resolve()
    if (found := shutil.which(f"python{version}")) and _starts(found, version):
        return Path(found)
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for one in sorted(kept.glob(f"{version}.*/bin/python{version}")):
        return one
    told = run(uv, "python", "find", "--no-python-downloads", version, cwd=ROOT)
    return Path(told.stdout.strip()) if told.returncode == 0 and told.stdout.strip() else None


def _starts(program, version):
    """Whether it is that Python: pyenv's stand-ins are on the path and may refuse to start."""
    told = run(program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])", cwd=ROOT)
    return told.stdout.strip() == version


def step(name, *command, cwd):
    """Run one step of a trial; what it prints is the reason where it fails."""
    try:
        done = run(*command, cwd=cwd, timeout=SECONDS_FOR_A_STEP)
    except subprocess.TimeoutExpired:
        raise Failed(f"{name} took more than {SECONDS_FOR_A_STEP} s") from None
    except OSError as error:
        raise Failed(f"{name} could not start: {error}") from None
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Failed(f"{name} ended with {done.returncode}: {' '.join(last)[:200]}")
    return done.stdout


def make_environment(python, wheel, folder, uv, lock=FULL_LOCK):
    """A new environment with the locked requirements and the wheel; return its programs."""
    step("venv", uv, "venv", "--quiet", "--python", python, folder, cwd=folder.parent)
    inside = ("--quiet", "--python", folder / "bin/python")
    locked = ("--only-binary", ":all:", "--require-hashes", "-r", ROOT / lock)
    step("requirements", uv, "pip", "install", *inside, *locked, cwd=folder.parent)
    step("install", uv, "pip", "install", *inside, "--no-deps", wheel, cwd=folder.parent)
    step("check", uv, "pip", "check", *inside, cwd=folder.parent)
    return folder / "bin"


def ask_pages(ringfence, folder):
    """Open the dashboard over the demo's project and read pages of it; return how many."""
    command = [ringfence, "serve", "--port", "0", "--json",
               "--config", ".ringfence/demo/ringfence.toml"]  # fmt: skip
    with subprocess.Popen(
        [*map(str, command)], cwd=folder, env=clean_environment(),
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as server:  # fmt: skip
        try:
            url = _read_url(server)
            for page in PAGES:
                with urllib.request.urlopen(url + page, timeout=SECONDS_FOR_A_STEP) as answer:
                    if answer.status != 200 or not answer.read():
                        raise Failed(f"the dashboard's page /{page} answered {answer.status}")
        except OSError as error:
            raise Failed(f"the dashboard did not answer: {error}") from None
        finally:
            os.killpg(server.pid, signal.SIGINT)
            code = server.wait(SECONDS_FOR_A_STEP)
    if code != 0:
        raise Failed(f"the dashboard ended with {code}")
    return len(PAGES)


def _read_url(server):
    text = ""
    for line in server.stdout:
        text += line
        if found := re.search(r'"url": "([^"]+)"', text):
            return found[1]
    raise Failed("the dashboard said no address")


def try_python(version, python, wheel, folder, uv):
    """Install the wheel for one Python and use it."""
    try:
        programs = make_environment(python, wheel, folder / "environment", uv)
        home = folder / "home"
        home.mkdir()
        ringfence = programs / "ringfence"
        step("--help", ringfence, "--help", cwd=home)
        report = json.loads(step("demo", ringfence, *DEMO, cwd=home))
        pages = ask_pages(ringfence, home)
        scorer = make_environment(python, wheel, folder / "scorer", uv, SCORER_LOCK)
        arrived = score_without_training(scorer, ringfence, home)
        measured = measure(scorer, folder, home)
        exact = step("version", programs / "python", "-V", cwd=home).split()[-1]
    except Failed as failed:
        return Trial(version, "FAILED", str(failed), ran=True)
    evaluated = sum(one["evaluated"] for one in report["runs"])
    facts = f"Python {exact}: demo of {len(report['runs'])} runs with {evaluated:,} sets, "
    facts += f"{pages} pages of the dashboard; {arrived} sets by a scorer without torch"
    return Trial(version, "ran", facts, ran=True, measured=measured)


def score_without_training(programs, full, home):
    """Score accounts that came after the demo in an environment without torch; return how many."""
    ringfence = programs / "ringfence"
    step("no torch", programs / "python", "-c", NOTHING_THAT_TRAINS, cwd=home)
    step("neo4j start", full, "neo4j", "start", "--config", CONFIG, cwd=home)
    try:
        status = (full, "neo4j", "status", "--show-password", "--json", "--config", CONFIG)
        server = json.loads(step("neo4j status", *status, cwd=home))
        login = (server["uri"], server["user"], server["password"])
        step("new accounts", programs / "python", "-c", ACCOUNTS_THAT_ARRIVE, *login, cwd=home)
        for number, verb in enumerate(SCORER_VERBS):
            said = step(" ".join(verb), ringfence, *verb, "--config", CONFIG, cwd=home)
            if number == 0:
                evaluated = json.loads(said)["evaluated"]
        if evaluated != 20:
            raise Failed(f"the scorer gave {evaluated} of 20 accounts their sets")
        refuse_to_train(ringfence, home)
    finally:
        step("neo4j stop", full, "neo4j", "stop", "--config", CONFIG, cwd=home)
    return evaluated


def refuse_to_train(ringfence, home):
    """The scorer says what to type where it is asked to train."""
    done = run(ringfence, "train", "--config", CONFIG, cwd=home)
    if done.returncode != 1 or "pip install 'ringfence[train]'" not in done.stderr:
        raise Failed(f"train without torch ended with {done.returncode}: {done.stderr[-200:]}")


def measure(scorer, folder, home):
    """Size of both environments by `du`, and seconds of cold commands in the scorer's."""
    sizes = (
        f"scorer {beside_goal(megabytes(folder / 'scorer'))}",
        f"with training {megabytes(folder / 'environment'):,} MB",
    )
    commands = ("--version",), ("worklist", "mule", "--config", CONFIG)
    cold = (
        f"`ringfence {words[0]}` "
        f"{min(seconds(scorer, words, home) for _ in range(COLD_RUNS)):.2f} s"
        for words in commands
    )
    return (*sizes, *cold)


def megabytes(folder):
    """What `du` says that a folder takes, without the .pyc files that Python wrote into it."""
    told = step("du", "du", "-sm", "--exclude=__pycache__", folder, cwd=folder.parent)
    return int(told.split()[0])


def beside_goal(size):
    """
    >>> beside_goal(612), beside_goal(1_400)
    ('612 MB (goal: below 700 MB, met)', '1,400 MB (goal: below 700 MB, NOT met)')
    """
    said = "met" if size < SCORER_GOAL_MB else "NOT met"
    return f"{size:,} MB (goal: below {SCORER_GOAL_MB} MB, {said})"


def seconds(programs, words, home):
    began = time.perf_counter()
    step(words[0], programs / "ringfence", *words, cwd=home)
    return time.perf_counter() - began


def table(trials):
    """
    >>> print(table([Trial("3.11", "ran", "fine", True), Trial("3.12", "untested", "none", False)]))
    | Python | outcome | |
    |---|---|---|
    | 3.11 | ran | fine |
    | 3.12 | untested | none |
    """
    rows = [f"| {one.version} | {one.outcome} | {one.facts} |" for one in trials]
    return "\n".join(["| Python | outcome | |", "|---|---|---|", *rows])


def main(argv=None):
    parser = argparse.ArgumentParser(description="Try the wheel on every Python of this machine.")
    parser.add_argument("--uv", default=str(ROOT / ".venv/bin/uv"), help="the program uv")
    parser.add_argument("--versions", nargs="+", default=VERSIONS, help="which Pythons to look for")
    options = parser.parse_args(argv)
    uv = shutil.which(options.uv) or options.uv
    uv = Path(uv).absolute()  # steps run in other folders
    with tempfile.TemporaryDirectory(prefix="ringfence-wheel-") as name:
        folder = Path(name)
        source = copy_of_the_tracked_files(folder / "source")
        sdist = build(source, folder / "sdist", "sdist")
        wheel = build(source, folder / "wheel")
        print(f"{sdist.name}: {len(sdist_files(sdist)):,} files, {sdist.stat().st_size:,} bytes")
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes", flush=True)
        trials = []
        for version in options.versions:
            python = find_python(version, uv)
            if python is None:
                facts = UNTESTED.format(version)
                trials.append(Trial(version, "untested", facts, ran=False))
                continue
            print(f"trying Python {version}: {python.name}", flush=True)
            own = folder / version
            own.mkdir()
            trials.append(try_python(version, python, wheel, own, uv))
    print(table(trials))
    for trial in trials:
        if trial.measured:
            print(f"{trial.version}: {'; '.join(trial.measured)}")
    return int(any(one.failed for one in trials) or not any(one.ran for one in trials))


if __name__ == "__main__":
    sys.exit(main())
