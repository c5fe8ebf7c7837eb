"""One place in training knows how many labels a graph has; everything else asks the family."""

import ast
from pathlib import Path

import numpy as np
import pytest

from ringfence.connector.errors import ConfigError
from ringfence.connector.mirror import create
from ringfence.jobs.training import network_family
from ringfence.jobs.training.network_family import family_of
from ringfence.jobs.training.one_label import OneLabel
from ringfence.jobs.training.several_labels import SeveralLabels
from ringfence.models.networks.edges import canonical_edges
from tests.jobs.training.test_split import WIDTH, grow, settings

FOLDER = Path(network_family.__file__).parent


def asks_for_labels(source):
    """Whether a module reads from a mirror or a mapping how many labels there are."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in {"features_are_strict", "has_raw_columns"}
        for node in ast.walk(ast.parse(source))
    )


def test_no_other_module_of_training_asks_how_many_labels_there_are():
    asking = {path.name for path in FOLDER.glob("*.py") if asks_for_labels(path.read_text())}
    assert asking <= {"network_family.py"}
    assert asks_for_labels("if mapping.features_are_strict: pass")  # the control: it would be seen
    assert asks_for_labels("if mirror.has_raw_columns: pass")


@pytest.fixture
def family(tmp_path):
    mirror = grow(create(tmp_path / "mirror", "graph", WIDTH), 200)
    return family_of(settings(tmp_path).mapping(), mirror)


def test_the_schema_of_the_graph_chooses_the_family(family):
    assert isinstance(family, OneLabel)
    assert not isinstance(family, SeveralLabels)


def test_memory_is_predicted_for_full_passes_and_grows_with_the_rows(family, tmp_path):
    inputs = family.fit_inputs(settings(tmp_path).model, np.arange(100))
    assert inputs.choose_batch_size(100) == 0
    assert inputs.predict_bytes(200, 3, 0) > inputs.predict_bytes(100, 3, 0) > 0
    batches = family.fit_inputs(settings(tmp_path, batch_size=64).model, np.arange(100))
    assert batches.choose_batch_size(100) == 64
    assert batches.predict_bytes(100, 3, 64) == 0


def test_an_unknown_network_is_refused_as_a_setting(family, tmp_path):
    inputs = family.fit_inputs(settings(tmp_path, network="gnc").model, np.arange(100))
    with pytest.raises(ConfigError, match="no network is called 'gnc'"):
        inputs.build_network(3)


def test_pyg_gets_the_edges_of_networks_in_their_order(family):
    data = family.to_pyg(None, lambda rows: {"place": rows})
    edges = data.edge_index.numpy()
    assert edges.shape[1] > 0
    assert np.array_equal(edges, canonical_edges(edges, nodes=200, undirected=False))
    assert data.num_nodes == len(data.place) == 200
