"""Random graphs of several labels in a real Neo4j: init, doctor, train, score, reconcile, audit.

The mirror must hold what the graph has after every step, and what is kept for the network must
give the outputs of tables that are made anew.
"""

import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringfence.connector.errors import RingfenceError
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.store.models import active_manifest
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.inference import inference_graph, outputs_at
from ringfence.jobs.integrity.mirror_change import MirrorChange
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.model_files import load_model
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.setup.init import run_init
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.setup.proposal.toml import toml
from ringfence.jobs.training.train import run_training
from ringfence.models.inference.several_labels import layer_cache
from tests.forms import PUBLISHED_SEED_KEY
from tests.graph_copy import empty_graph
from tests.typed_worlds import steps, worlds

pytestmark = pytest.mark.long
FIRST = 160  # nodes that are there at training


def as_toml(world, uri, folder):
    """A configuration with the world's names, written as `init` writes them."""
    mapping = world.mapping
    lines = ['project = "worlds"', "[neo4j]", f"uri = {toml(uri)}", "[graph]",
             f"class_property = {toml(mapping.class_property)}"]  # fmt: skip
    for at, node in enumerate(mapping.nodes):
        lines += ["[[graph.nodes]]", f"label = {toml(node.label)}", f"key = {toml(node.key)}",
                  f"columns = {toml(list(node.column_names))}"]  # fmt: skip
        lines += ['role = "classified"'] if at == 0 else []
    for one in mapping.relations:
        source, target = mapping.nodes[one.source].label, mapping.nodes[one.target].label
        lines += ["[[graph.relationships]]", f"from = {toml(source)}", f"type = {toml(one.type)}",
                  f"to = {toml(target)}", f"undirected = {toml(one.undirected)}",
                  f"after_evaluation = {toml(one.after_evaluation)}"]  # fmt: skip
    for node, kinds in zip(mapping.nodes, world.kinds, strict=True):
        lines += [f"[graph.columns.{toml(node.label)}]"]
        lines += [f"{toml(name)} = {toml(kind)}" for name, kind in kinds.items()]
    lines += ["[model]", "hidden = 4", "max_epochs = 3", "holdout = 0", "class_weights = false",
              "graph_check = false"]  # fmt: skip
    return "\n".join([*lines, "[engine]", f"folder = {toml(str(folder))}"])


def write(graph, world, change):
    """Bring a change to the graph."""
    mapping = world.mapping
    for at, a, b in change.parted:
        one = mapping.relations[at]
        source, target = (
            quote(mapping.nodes[one.source].label),
            quote(mapping.nodes[one.target].label),
        )
        graph.run(
            f"MATCH (:{source} {{`the key`: $a}})-[r:{quote(one.type)}]->"
            f"(:{target} {{`the key`: $b}}) DELETE r",
            a=a, b=b,
        )  # fmt: skip
    for label, key in change.removed:
        name = quote(mapping.nodes[label].label)
        graph.run(f"MATCH (n:{name} {{`the key`: $key}}) DETACH DELETE n", key=key)
    for label, node in enumerate(mapping.nodes):
        name = quote(node.label)
        for verb, nodes in (("CREATE", change.added), ("MATCH", change.altered)):
            rows = [
                {
                    "key": key,
                    "columns": {**world.nodes[at, key], "the class": _class(world, at, key)},
                }
                for at, key in nodes
                if at == label
            ]
            graph.run(
                f"UNWIND $rows AS row {verb} (n:{name} {{`the key`: row.key}}) "
                "SET n += row.columns",
                rows=rows,
            )
    for at, one in enumerate(mapping.relations):
        source, target = (
            quote(mapping.nodes[one.source].label),
            quote(mapping.nodes[one.target].label),
        )
        graph.run(
            f"UNWIND $ends AS end MATCH (a:{source} {{`the key`: end[0]}}) "
            f"MATCH (b:{target} {{`the key`: end[1]}}) CREATE (a)-[:{quote(one.type)}]->(b)",
            ends=[[a, b] for kind, a, b in change.joined if kind == at],
        )


def _class(world, label, key):
    return world.classes.get(key) if label == 0 else None


def kept_and_anew(workspace, folder):
    """Outputs of all classified nodes with what the last run kept, and from nothing."""
    mapping = workspace.mapping
    typed = load_graph(workspace)
    model = load_model(workspace.models, active_manifest(workspace.store, workspace.project))
    graph = inference_graph(typed, mapping)
    rows = typed.rows_of_label(0)
    copy = folder / "copy" / "t"
    shutil.copytree(workspace.tables, copy)  # a look from outside a run must not open its tables
    places = (copy, folder / "anew" / "t")
    return [outputs_at(place, model, typed, mapping, graph, rows).logits for place in places]


def look_through_the_front_door(graph, world, path):
    """What init writes can be read again, and doctor has words; neither ends in a traceback."""
    try:
        run_init(path, graph.uri, graph.auth[0], world.mapping.nodes[0].label, "front", force=True,
                 class_property="the class")  # fmt: skip
    except RingfenceError:
        return  # in words
    load_settings(path)
    assert run_doctor(path)


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(world=worlds(), history=steps, late_class=st.booleans())
def test_any_world_goes_through_the_whole_path(
    world, history, late_class, graph, tmp_path_factory, monkeypatch
):
    empty_graph(graph)
    monkeypatch.setattr(layer_cache, "MIN_ENTRIES_TO_CACHE", 2)  # random graphs are small
    folder = tmp_path_factory.mktemp("world")
    environment = {
        "RINGFENCE_NEO4J_USER": graph.auth[0],
        "RINGFENCE_NEO4J_PASSWORD": graph.auth[1],
        "RINGFENCE_SEED_KEY": PUBLISHED_SEED_KEY,
        "RINGFENCE_AUDIT_URL": f"sqlite:///{folder}/worlds.db",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    write(graph, world, world.step(FIRST, 20, 0, 0, known=True))
    look_through_the_front_door(graph, world, folder / "front.toml")
    path = folder / "worlds.toml"
    path.write_text(as_toml(world, graph.uri, folder / "state"), encoding="utf-8")
    with open_workspace(load_settings(path, environment)) as workspace:
        run_migrations(workspace)
        run_training(workspace)
        for number, step in enumerate(history):
            change = world.step(*step)
            write(graph, world, change)
            due = [key for label, key in change.added if label == 0]
            report = run_scoring(workspace)
            assert report.evaluated == len(due)
            assert report.quarantined == 0
            if workspace.tables.exists():  # somebody was due
                kept, anew = kept_and_anew(workspace, folder / f"step{number}")
                assert np.isfinite(kept).all()
                np.testing.assert_array_equal(kept, anew)
            assert run_reconcile(workspace, repair=False).mirror == MirrorChange(0, 0, 0, 0, 0)
        if late_class:
            name = quote(world.mapping.nodes[0].label)
            graph.run(f"MATCH (n:{name}) WHERE n.`the class` IS NULL SET n.`the class` = 'low'")
            run_audit(workspace)
