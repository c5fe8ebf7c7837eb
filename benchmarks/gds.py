"""The nearest alternative on the same server and data: a full GDS cycle beside a ringfence run.

    python -m benchmarks.gds [--quick | --nodes 100000]

GDS scores by projecting the graph into memory again, GraphSAGE embeddings of all nodes, a
classifier on them and writing all predictions; ringfence scores the 1,000 nodes that are new. Both
in turns, after every batch, on the clock, fastest of each. Needs some 400 jars that ringfence
itself doesn't: the first call resolves and downloads them with jgo (ten minutes), later ones find
them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from benchmarks.growing import Accounts, arrive, import_graph, write_files
from benchmarks.measuring import PUBLISHED_KEY, keep, show, wall_seconds
from benchmarks.run import KNOWN, NEW, close_known, settings_file
from benchmarks.server import SERVER
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph, connect
from ringfence.connector.neo4j.embedded import launch as launching
from ringfence.connector.neo4j.embedded.folder import DataFolder, ServerInfo
from ringfence.connector.neo4j.embedded.jars import repository_folder
from ringfence.connector.neo4j.embedded.options import configuration
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training

NEO4J, GDS = "2026.01.4", "2.26.0"
ENDPOINT = "+".join(
    [f"org.neo4j:{name}:{NEO4J}" for name in ("neo4j", "neo4j-bolt")]
    + [f"org.neo4j.gds:{name}:{GDS}" for name in ("proc", "opengds-extension", "proc-sysinfo")]
)
PLUGINS = ("proc-", "cypher-aggregation-", "legacy-cypher-projection-")
# this server is older than ringfence's own and doesn't know all of its settings
SETTINGS = """server.config.strict_validation.enabled=false
dbms.security.procedures.unrestricted=gds.*
"""
START_SECONDS, ROUNDS = 300, 6

KNOWN_CLASSES = """
MATCH (n:Account) WHERE n.kind IS NOT NULL
WITH n.kind AS kind, collect(n) AS nodes ORDER BY kind
WITH collect(nodes) AS groups
UNWIND range(0, size(groups) - 1) AS y
UNWIND groups[y] AS n
SET n:Known, n.y = y
"""
PROJECT = """
CALL gds.graph.project('g',
  {Account: {properties: ['features']}, Known: {properties: ['features', 'y']}},
  {PAID: {orientation: 'UNDIRECTED'}}) YIELD nodeCount RETURN nodeCount
"""
TRAIN = [
    """CALL gds.beta.graphSage.train('g', {modelName: 'sage', featureProperties: ['features'],
       nodeLabels: ['Known'], embeddingDimension: 64, epochs: 1, maxIterations: 1,
       batchSamplingRatio: 0.05, randomSeed: 1}) YIELD trainMillis RETURN trainMillis""",
    "CALL gds.beta.pipeline.nodeClassification.create('pipe') YIELD name RETURN name",
    """CALL gds.beta.pipeline.nodeClassification.addNodeProperty('pipe', 'beta.graphSage',
       {mutateProperty: 'embedding', modelName: 'sage', contextNodeLabels: ['Account']})
       YIELD name RETURN name""",
    """CALL gds.beta.pipeline.nodeClassification.selectFeatures('pipe', ['embedding'])
       YIELD name RETURN name""",
    """CALL gds.beta.pipeline.nodeClassification.configureSplit('pipe',
       {validationFolds: 2, testFraction: 0.2}) YIELD name RETURN name""",
    """CALL gds.beta.pipeline.nodeClassification.addLogisticRegression('pipe', {maxEpochs: 5})
       YIELD name RETURN name""",
    """CALL gds.beta.pipeline.nodeClassification.train('g', {pipeline: 'pipe',
       targetNodeLabels: ['Known'], modelName: 'classes', targetProperty: 'y',
       metrics: ['ACCURACY'], randomSeed: 1}) YIELD trainMillis RETURN trainMillis""",
]
PREDICT = """
CALL gds.beta.pipeline.nodeClassification.predict.write('g', {modelName: 'classes',
  targetNodeLabels: ['Account'], writeProperty: 'predicted',
  predictedProbabilityProperty: 'probabilities'})
YIELD nodePropertiesWritten RETURN nodePropertiesWritten AS n
"""


def jars() -> list[Path]:
    """All jars of this server; resolved once, the list is kept beside the jars."""
    listed = repository_folder() / f"gds-{GDS}-neo4j-{NEO4J}.json"
    if not listed.exists():
        import jgo

        found = sorted({str(one.resolve()) for one in jgo.resolve(ENDPOINT)})
        listed.write_text(json.dumps(found), encoding="utf-8")
    return [Path(one) for one in json.loads(listed.read_text(encoding="utf-8"))]


@contextmanager
def running(home: Path, files: list[Path]) -> Iterator[ServerInfo]:
    """A Neo4j with GDS: its procedures are found only in the folder of plugins."""
    (home / "plugins").mkdir(parents=True)
    for jar in files:
        if "gds" in jar.parts and jar.name.startswith(PLUGINS):
            shutil.copy(jar, home / "plugins")
    folder = DataFolder(home)
    folder.create()
    launching.configuration = lambda options, port: configuration(options, port) + SETTINGS
    child = launching.launch(folder, SERVER, files, attached=True)
    try:
        deadline = time.monotonic() + START_SECONDS
        while (server := embedded.find_running(home)) is None:
            if child.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("\n".join(folder.last_words()))
            time.sleep(0.5)
        yield server
    finally:
        embedded.stop(home)
        child.wait()


def train_gds(graph: Graph) -> None:
    graph.run(KNOWN_CLASSES)
    graph.run(PROJECT)
    for query in TRAIN:
        graph.run(query)


def cycle(graph: Graph) -> None:
    """One full cycle: the graph as it is now, embeddings, classes, all of them written."""
    graph.run("CALL gds.graph.drop('g') YIELD graphName RETURN graphName")
    graph.run(PROJECT)
    graph.run(PREDICT)


def measure(nodes: int) -> dict[str, object]:
    files = jars()
    with tempfile.TemporaryDirectory() as name:
        folder, accounts = Path(name), Accounts(np.random.default_rng(1))
        home = folder / "neo4j"
        import_graph(home, write_files(folder, accounts, nodes, KNOWN), files)
        with running(home, files) as server:
            environment = {
                **os.environ,
                **PUBLISHED_KEY,
                "RINGFENCE_NEO4J_PASSWORD": server.password,
            }
            settings = load_settings(settings_file(folder, server.uri, "sage"), environment)
            with (
                open_workspace(settings) as workspace,
                closing(connect(server.uri, server.user, server.password)) as graph,
            ):
                run_migrations(workspace)
                trained, _ = wall_seconds(lambda: run_training(workspace))
                close_known(workspace)
                gds_trained, _ = wall_seconds(lambda: train_gds(graph))
                gds, own = [], []
                for _ in range(ROUNDS):
                    arrive(graph, accounts, NEW)
                    gds.append(wall_seconds(lambda: cycle(graph))[0])
                    own.append(wall_seconds(lambda: run_scoring(workspace))[0])
                    show({"gds": gds[-1], "ringfence": own[-1]})
    return {
        "nodes": nodes, "relationships": nodes * 5, "new": NEW, "gds_seconds": min(gds),
        "ringfence_seconds": min(own), "ratio": min(gds) / min(own), "gds_rounds": gds,
        "ringfence_rounds": own, "gds_train_seconds": gds_trained, "train_seconds": trained,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=100_000)
    given = parser.parse_args()
    rows = [measure(KNOWN * 2 if given.quick else given.nodes)]
    show(rows[0])
    keep("gds", rows, given.quick, neo4j=NEO4J, gds=GDS)


if __name__ == "__main__":
    main()
