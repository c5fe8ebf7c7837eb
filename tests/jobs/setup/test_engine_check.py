"""What `ringfence doctor` says of the configured engine, and what is refused before anything."""

import sys

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.load import load
from ringfence.jobs.engines.registry import close_engines, engine_of
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.setup.checks.engine import check_engine
from ringfence.jobs.training.train import run_training

ONE_LABEL = """
[graph]
label = "Account"
key = "id"
features = "x"
class_property = "kind"
"""
SEVERAL = """
[graph]
class_property = "risk"
[[graph.nodes]]
label = "Order"
key = "id"
role = "classified"
columns = ["amount"]
[[graph.nodes]]
label = "Shop"
key = "name"
columns = ["country"]
[[graph.relationships]]
from = "Order"
type = "AT"
to = "Shop"
"""
OWN = '[model]\nnetwork = "their.module:Net"\n'
ON_RAY = '[engine]\nkind = "ray"\n'


def settings_of(tmp_path, text):
    path = tmp_path / "ringfence.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, {})


@pytest.mark.parametrize("graph", [ONE_LABEL, SEVERAL])
def test_networks_of_ringfence_run_on_workers_and_others_are_refused(tmp_path, graph):
    (fine,) = check_engine(settings_of(tmp_path, graph + ON_RAY))
    assert fine.level == "ok"
    assert "2 workers started on this machine" in fine.text
    (refused,) = check_engine(settings_of(tmp_path, graph + OWN + ON_RAY))
    assert refused.level == "error"
    assert "can't compute the network their.module:Net" in refused.text
    assert list(check_engine(settings_of(tmp_path, graph + OWN))) == []


def test_training_a_network_that_the_engine_cant_compute_is_refused_before_anything(
    tmp_path, monkeypatch
):
    """There is no Neo4j, no store, no Ray: nothing of it was asked for."""
    monkeypatch.delitem(sys.modules, "ringfence.jobs.engines.ray_workers", raising=False)
    settings = settings_of(tmp_path, ONE_LABEL + OWN + ON_RAY)
    workspace = Workspace(settings, settings.mapping(), None, None)
    with pytest.raises(ConfigError, match=r"can't compute the network their\.module:Net") as error:
        run_training(workspace)
    assert "local" in error.value.next_step
    assert "ringfence.jobs.engines.ray_workers" not in sys.modules
    assert engine_of(settings.engine)._workers is None
    close_engines()
