"""What a cold command costs: a process of its own, from its start to its end.

Every command is run in two states of the bytecode: `compiled` has all `.pyc` files, as after `make
demo`, `make test` and in the container; `from source` has none and may write none, as in an
image that was installed without them and is read-only: each process then compiles every
module that it imports. Both states have a cache folder of their own (PYTHONPYCACHEPREFIX).

    python -m benchmarks.cold [--quick] [--before FOLDER]

A small graph in an embedded Neo4j is scored once, by a project with the default score (DAPS) and by
one with APS; then `score` with nothing new of both, `score` with 300 new nodes, `audit`, `explain`,
`worklist`, `verify`, `status`, `--help` and an import of torch + PyG are run in turns, each in a
new process. CPU seconds are those of the process, without the server's; memory is its largest
resident set; medians over the rounds, ratios taken within a round.
`--before` is a folder that holds an earlier version as its package `ringfence` (`git worktree add
FOLDER/ringfence 3f694fd`): its commands are run in the same turns, on a project and a server of
their own. The scheduler's memory is read after ten runs that found nothing. The profiles sum
`python -X importtime` of a whole command by package, with all `.pyc` files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring import keep, show
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.write.bulk import create_nodes, create_relationships
from ringfence.connector.progress import no_progress
from ringfence.jobs.config.load import load
from ringfence.jobs.project.workspace import open_graph
from ringfence.jobs.samples.accounts import SAMPLE_MAPPING, sample_toml

NODES, ROUNDS, EMPTY_RUNS = 2_000, 7, 10
NEW_NODES, FIRST_NEW_KEY = 300, 10_000_000
MAIN = ("-c", "from ringfence.jobs.cli.app import main; main()")
Command = tuple[list[str], Path, dict[str, str]]
MAIN_OF_ANY_VERSION = (
    "-c",
    "try:\n    from ringfence.jobs.cli.app import main\n"
    "except ModuleNotFoundError:\n    from ringfence.jobs.cli import main\n"
    "main()",
)
VERBS: dict[str, tuple[str, ...]] = {
    "score": ("score",),
    "audit": ("audit",),
    "explain": ("explain", str(FIRST_NEW_KEY)),
    "worklist": ("worklist",),
    "verify": ("verify",),
    "status": ("status",),
    "--help": ("--help",),
}
"""By the name of a row, what is typed; nothing is new then."""

WITH_NEW_NODES = f"score, {NEW_NODES} new nodes"
BASE = "import torch + PyG"
FROM_SOURCE = ", from source"
IMPORTS = ("-W", "ignore", "-c", "import torch, torch_geometric.nn")


def spend(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Run a command to its end; return its CPU seconds and its largest resident set in MB."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    told = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{told.decode()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3


def prepare(home: Path, uri: str, environment: dict[str, str], score: str = "") -> Path:
    """Make a scored project, with the default score or a named one, on one sample graph."""
    folder = home / f"now{score}"
    folder.mkdir()
    text = sample_toml(uri, f"now{score}", "auto").replace("[model]", "[model]\nmax_epochs = 20")
    if score:
        text = text.replace("[conformal]", f'[conformal]\nscore = "{score}"')
    (folder / "ringfence.toml").write_text(text, encoding="utf-8")
    sample = () if score else (("sample", "--nodes", str(NODES)),)
    for verb in (*sample, ("migrate",), ("train",), ("score",)):
        spend([sys.executable, *MAIN, *verb], folder, environment)
    return folder


def prepare_earlier(home: Path, uri: str, environment: dict[str, str]) -> Path:
    """Make a project of the earlier version, with a configuration that it can read."""
    folder = home / "before"
    folder.mkdir()
    write = (
        "import importlib, sys\n"
        "for name in ('ringfence.jobs.samples.accounts', 'ringfence.jobs.sample_graph'):\n"
        "    try: made = importlib.import_module(name).sample_toml(sys.argv[1], 'before')\n"
        "    except ModuleNotFoundError: continue\n"
        "    made = made.replace('[model]', '[model]\\nmax_epochs = 20')\n"
        "    open('ringfence.toml', 'w').write(made)\n"
    )
    spend([sys.executable, "-c", write, uri], folder, environment)
    for verb in (("sample", "--nodes", str(NODES)), ("migrate",), ("train",), ("score",)):
        spend([sys.executable, *MAIN_OF_ANY_VERSION, *verb], folder, environment)
    return folder


@dataclass(slots=True)
class Arrivals:
    """Nodes that come into the sample graph, each with a payment to an older one."""

    graph: Graph
    next_key: int = FIRST_NEW_KEY

    def add(self) -> None:
        """Let nodes arrive, stamped by the server's clock."""
        rng = np.random.default_rng(self.next_key)
        (row,) = self.graph.read("MATCH (a:Account) RETURN size(a.features) AS width LIMIT 1")
        features = rng.normal(size=(NEW_NODES, row["width"])).astype(np.float32)
        keys = list(range(self.next_key, self.next_key + NEW_NODES))
        given = [None] * NEW_NODES, None, [{"region": "north"}] * NEW_NODES, no_progress
        create_nodes(self.graph, SAMPLE_MAPPING, keys, features, *given)
        known = rng.integers(0, NODES, NEW_NODES).tolist()
        create_relationships(self.graph, SAMPLE_MAPPING, keys, known, None, no_progress)
        self.next_key += NEW_NODES


def measure_rounds(
    commands: dict[str, Command], rounds: int, before: dict[str, Callable[[], object]]
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of the rounds so far, after each; `before` is done first, and not measured."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for done in range(rounds):
        for name, command in commands.items():
            before.get(name, no_work)()
            spent[name].append(spend(*command))
        print(f"round {done + 1} of {rounds}", flush=True)
        yield [row_of(name, spent) for name in spent]


def no_work() -> None:
    """Do nothing before a command."""


def bytecode_states(environment: dict[str, str], home: Path) -> dict[str, dict[str, str]]:
    """Return the environment of each state, by what it adds to a command's name."""
    bare = {name: v for name, v in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    written, empty = str(home / "bytecode"), str(home / "no-bytecode")
    source = {"PYTHONPYCACHEPREFIX": empty, "PYTHONDONTWRITEBYTECODE": "1"}
    return {"": bare | {"PYTHONPYCACHEPREFIX": written}, FROM_SOURCE: bare | source}


def row_of(name: str, spent: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    state = FROM_SOURCE if name.endswith(FROM_SOURCE) else ""
    found, base = spent[name], spent[BASE + state]
    ratios = [cpu / of_base for (cpu, _), (of_base, _) in zip(found, base, strict=True)]
    row = {"command": name.removesuffix(FROM_SOURCE),
           "bytecode": "from source" if state else "compiled",
           "cpu_seconds": median(cpu for cpu, _ in found),
           "x_imports": median(ratios), "peak_mb": median(mb for _, mb in found),
           "rounds": len(found)}  # fmt: skip
    if not state and (before := spent.get(f"{name.partition(',')[0]}, before")):
        pairs = list(zip(found, before, strict=True))
        row["of_before"] = median(now / then for (now, _), (then, _) in pairs)
        row["mb_of_before"] = median(now / then for (_, now), (_, then) in pairs)
    show(row)
    return row


def scheduler_mb(folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """The resident set of a scheduler after ten runs that found nothing."""
    jobs = {f"RINGFENCE_SCHEDULE_{job}": "" for job in ("AUDIT", "RECONCILE", "VERIFY", "REPORT")}
    often = {"RINGFENCE_SCHEDULE_SCORE": "every 1 seconds", "RINGFENCE_SCHEDULE_TICK_SECONDS": "1"}
    log = folder / "schedule.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, *MAIN, "schedule"], cwd=folder, stdout=output, stderr=output,
            env=environment | jobs | often,
        )  # fmt: skip
    try:
        while log.read_text().count(" done ") < EMPTY_RUNS:
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.2)
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    finally:
        process.terminate()
        process.wait()
    resident = next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmRSS"))
    row = {"command": f"schedule, idle after {EMPTY_RUNS} empty runs", "peak_mb": resident}
    show(row)
    return row


def import_profile(command: Command) -> dict[str, float]:
    """Milliseconds on the clock that importing spends in each package, in a whole command."""
    (program, *arguments), folder, environment = command
    told = subprocess.run(
        [program, "-X", "importtime", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    spent: Counter[str] = Counter()
    for line in told.splitlines():
        if not line.startswith("import time:"):  # what the command says on its way
            continue
        own, _, name = line.removeprefix("import time:").split("|")
        if own.strip().isdigit():
            spent[name.strip().partition(".")[0]] += int(own)
    return {name: round(us / 1000, 1) for name, us in spent.most_common(8)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--before", type=Path, help="a folder with an earlier ringfence")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="printed after each")
    given = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(embedded.running(home / "neo4j"))
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RINGFENCE_")}
        states = bytecode_states(clean | {"RINGFENCE_NEO4J_PASSWORD": server.password}, home)
        environment = states[""]
        folder = prepare(home, server.uri, environment)
        beside = prepare(home, server.uri, environment, "APS")
        commands: dict[str, Command] = {}
        for state, variables in states.items():
            commands[BASE + state] = ([sys.executable, *IMPORTS], home, variables)
            commands["score, APS" + state] = ([sys.executable, *MAIN, "score"], beside, variables)
            for name, typed in VERBS.items():
                commands[name + state] = ([sys.executable, *MAIN, *typed], folder, variables)
            commands[WITH_NEW_NODES + state] = commands["score" + state]
        settings = load(folder / "ringfence.toml", environment)
        arrivals = Arrivals(stack.enter_context(open_graph(settings)))
        arrivals.add()
        before: dict[str, Callable[[], object]] = {}
        for state in states:
            before[WITH_NEW_NODES + state] = arrivals.add
            before["score, APS" + state] = partial(spend, *commands["score, APS"])
        for name in ("score", *commands):  # once, so that what is imported is compiled
            before.get(name, no_work)()
            spend(*commands[name])
        if given.before:
            other = stack.enter_context(embedded.running(home / "neo4j-before"))
            earlier = environment | {
                "PYTHONPATH": str(given.before),
                "RINGFENCE_NEO4J_PASSWORD": other.password,
            }
            own = prepare_earlier(home, other.uri, earlier)
            for verb in ("score", "status", "--help"):
                command = [sys.executable, *MAIN_OF_ANY_VERSION, verb]
                commands[f"{verb}, before"] = (command, own, earlier)
        idle = scheduler_mb(folder, environment)
        arrivals.add()
        profile = {name: import_profile(commands[name]) for name in (WITH_NEW_NODES, *VERBS)}
        for name, spent in profile.items():
            show({"imports of": name, **spent})
        rounds = list(measure_rounds(commands, 3 if given.quick else given.rounds, before))
    # Last: it fills 256 MB, and a child's largest resident set begins with its parent's.
    keep("cold", [*rounds[-1], idle], given.quick, profile=profile)


if __name__ == "__main__":
    main()
