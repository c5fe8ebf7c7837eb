"""Small streamed reads in two threads: does every one get its answer?

    python -m benchmarks.streams [--begin] [--minutes 2]

A whole read of a tiny graph in hundreds of ranges, so that two threads open streams all the time.
With `--begin` each stream begins a transaction of its own first, as ringfence did: sooner or later
the server leaves a BEGIN unanswered that came together with another one. Nothing is in flight then
on either side; after 120 s the driver gives the connection up. Prints how many streams were read
and the longest silence, and ends at a silence of 20 s.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring import keep, show
from benchmarks.server import running
from ringfence.connector.mirror import CLASSIFIED, create
from ringfence.connector.neo4j.bolt import READ_ACCESS
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.read import nodes as reading
from ringfence.connector.neo4j.read import streams
from ringfence.connector.neo4j.read.id_ranges import IdRange
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.whole import read_all_relations
from tests.connector.neo4j.read.things import FILL, MAPPING

RANGES, ROWS, SILENCE = 400, 7, 20.0


class Counted:
    """Streams of a graph, counted; `silent` is how long none of them has ended."""

    def __init__(self, graph: Graph, begin: bool) -> None:
        self.graph, self.begin, self.plain = graph, begin, graph.stream
        self.streams, self.longest, self.last = 0, 0.0, time.monotonic()

    def stream(self, query: str, fetch_size: int, **parameters: Any) -> Iterator[Any]:
        yield from (self.begun if self.begin else self.plain)(query, fetch_size, **parameters)
        self.longest = max(self.longest, self.silent)
        self.streams, self.last = self.streams + 1, time.monotonic()

    def begun(self, query: str, fetch_size: int, **parameters: Any) -> Iterator[Any]:
        settings = {"default_access_mode": READ_ACCESS, "fetch_size": fetch_size}
        with self.graph._session(**settings) as session, session.begin_transaction() as one:
            yield from one.run(query, parameters)

    @property
    def silent(self) -> float:
        return time.monotonic() - self.last


def tiny_ranges(*_: Any) -> list[IdRange]:
    bounds = list(range(1, RANGES))
    return [IdRange(a, b) for a, b in zip([None, *bounds], [*bounds, None], strict=True)]


def end_when_silent(counted: Counted, told: dict[str, Any]) -> None:
    """A thread that waits for an answer can't be ended: the process is."""
    while counted.silent < SILENCE:
        time.sleep(0.5)
    show(told | {"streams": counted.streams, "longest_silence_s": counted.silent})
    print(f"no answer for {SILENCE:.0f} s", flush=True)
    os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--begin", action="store_true")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    told: dict[str, Any] = {"way": "with BEGIN" if given.begin else "as it is"}
    minutes = 0.2 if given.quick else given.minutes
    streams.MIN_NODES_FOR_STREAMS, reading.id_ranges = 0, tiny_ranges
    with running() as (graph, _), tempfile.TemporaryDirectory() as folder:
        graph.run(FILL)
        counted = Counted(graph, given.begin)
        graph.stream = counted.stream  # type: ignore[method-assign]
        reader = GraphReader(graph, MAPPING, Path(folder), ROWS, 0.0)
        mirror = create(reader.folder, "streams", width=2)
        mirror.first_read.at_targets = (False,) * len(MAPPING.relations)
        end = time.monotonic() + 60 * minutes
        watch = threading.Thread(target=end_when_silent, args=(counted, told), daemon=True)
        watch.start()
        while time.monotonic() < end:
            label = reader.label(mirror, CLASSIFIED)
            nodes = sum(len(block.keys) for block in label.read_all(200))
            links = sum(
                len(block.targets) for block, _ in read_all_relations(reader, mirror, [200])
            )
            if (nodes, links) != (200, 400):
                raise SystemExit(f"{nodes} nodes and {links} relationships were read")
        row = told | {"streams": counted.streams, "longest_silence_s": counted.longest}
    show(row)
    if not given.begin:
        keep("streams", [row], given.quick)


if __name__ == "__main__":
    main()
