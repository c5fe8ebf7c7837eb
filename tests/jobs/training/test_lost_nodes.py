"""Training is refused where many nodes can't be used, and says why."""

import pytest

from ringfence.connector.errors import ModelError
from ringfence.jobs.training.train import run_training


def test_training_is_refused_where_many_nodes_fall_out(grown):
    run = grown.workspace.graph.run
    run("MATCH (a:Account) WHERE a.id % 5 = 0 SET a.features = a.features[..3]")
    with pytest.raises(ModelError, match=r"of 300 nodes can't be used: \d+ because 3 features"):
        run_training(grown.workspace)


def test_a_few_unusable_nodes_stop_nobody(grown):
    run = grown.workspace.graph.run
    run("MATCH (a:Account) WITH a ORDER BY a.id LIMIT 3 SET a.features = a.features[..3]")
    assert run_training(grown.workspace).nodes == 297
