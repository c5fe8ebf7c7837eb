"""How much code one new node passes through: functions, modules and folders of one traced run.

    python -m benchmarks.modules_of_a_run            # both forms of a configuration
    python -m benchmarks.modules_of_a_run --files    # also which modules

The same small graph is described as one label and as `[[graph.nodes]]`. A version is trained and
a first run made; then one node comes, and the run that evaluates it is traced: every Python
function that is entered in `connector`, `jobs` or `models`. Bodies of modules and classes are not
counted, nor what numba compiled.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks import server
from ringfence.connector.neo4j.driver import Graph
from ringfence.jobs.config.load import load
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training
from tests.forms import FORMS, accounts_toml
from tests.graph_copy import Graph as EmptiedGraph
from tests.graph_copy import empty_graph

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("connector", "jobs", "models")
NODES = 600
NEW_NODE = """
MATCH (n:Account) WITH n LIMIT 1
CREATE (m:Account {id: 'new', features: n.features, created_at: datetime()})
CREATE (m)-[:PAID {created_at: datetime()}]->(n)
"""


@dataclass(slots=True)
class Trace:
    """The functions that were entered, as path and name, and the steps from room to room."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    crossings: int = 0
    _room: str = ""

    @property
    def modules(self) -> set[str]:
        """Paths of the modules whose functions were entered."""
        return {path for path, _ in self.functions}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a function that is entered: what `sys.setprofile` calls."""
        code = frame.f_code
        if event != "call" or code.co_name in {"<module>", "<lambda>"} or _is_class_body(frame):
            return
        path = code.co_filename.removeprefix(f"{ROOT}/")
        room = path.partition("/")[0]
        if room not in ROOMS or path == code.co_filename:
            return
        self.functions.add((path, code.co_qualname))
        self.crossings += bool(self._room) and room != self._room
        self._room = room


def _is_class_body(frame: FrameType) -> bool:
    return "__qualname__" in frame.f_locals and "__module__" in frame.f_locals


def trace_run(form: str, graph: Graph, password: str) -> Trace:
    """Return the trace of the run that evaluates one new node."""
    empty_graph(EmptiedGraph(graph.driver, graph.uri, ("neo4j", password)))
    server.filled(graph, NODES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ringfence.toml"
        path.write_text(accounts_toml(form, graph.uri, form), encoding="utf-8")
        settings = load(path, {"RINGFENCE_NEO4J_PASSWORD": password})
        with open_workspace(settings) as workspace:
            run_migrations(workspace)
            run_training(workspace)
            run_scoring(workspace)
            graph.run(NEW_NODE)
            trace = Trace()
            threading.setprofile(trace)
            sys.setprofile(trace)
            try:
                report = run_scoring(workspace)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
    assert report.evaluated == 1
    return trace


def print_table(traces: dict[str, Trace]) -> None:
    """Print a column per form, and what all of them share."""
    shared = set.intersection(*(trace.modules for trace in traces.values()))
    rows = {
        "functions": [len(t.functions) for t in traces.values()],
        "modules": [len(t.modules) for t in traces.values()],
        "modules of this form alone": [len(t.modules - shared) for t in traces.values()],
        "folders": [len({str(Path(p).parent) for p in t.modules}) for t in traces.values()],
        "steps from room to room": [t.crossings for t in traces.values()],
    }
    print(f"{'':32}" + "".join(f"{form:>12}" for form in traces))
    for word, counts in rows.items():
        print(f"{word:32}" + "".join(f"{count:12,}" for count in counts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="also name the modules")
    given = parser.parse_args()
    with server.running() as (graph, password):
        traces = {form: trace_run(form, graph, password) for form in FORMS}
    print_table(traces)
    if given.files:
        for form, trace in traces.items():
            print(f"\n{form}:", *sorted(trace.modules), sep="\n  ")


if __name__ == "__main__":
    main()
