"""torch's threads: one below the measured size, and weights that no further thread changes."""

import numpy as np
import pytest
import torch

from ringfence.models.networks import SAGE
from ringfence.models.networks.threads import (
    MIN_NUMBERS_FOR_TRAINING_THREADS,
    choose_threads,
    threads_for,
)
from ringfence.models.training.one_label_data import OneLabelData
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train


def test_several_threads_are_for_large_graphs_alone():
    width = 64
    edges = MIN_NUMBERS_FOR_TRAINING_THREADS // width
    assert [choose_threads(edges - 1, width, 8), choose_threads(edges, width, 8)] == [1, 8]
    assert choose_threads(edges, width, 1) == 1


def divide_by_missing_threads(count):
    """Fail with this error only where no thread is missing."""
    return 1 / count


def test_threads_are_put_back_even_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), threads_for(10**9, before + 1):
        divide_by_missing_threads(torch.get_num_threads() - before - 1)
    assert torch.get_num_threads() == before


def test_weights_do_not_depend_on_the_number_of_threads():
    rng, nodes = np.random.default_rng(0), 3_000
    graph = OneLabelData(
        torch.from_numpy(rng.standard_normal((nodes, 8)).astype(np.float32)),
        torch.from_numpy(rng.integers(0, nodes, (2, 30_000))),
    )
    classes = torch.from_numpy(rng.integers(0, 3, nodes))
    targets = TrainingTargets(classes, torch.arange(1_500), torch.arange(1_500, nodes))
    before, states = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            options = TrainingOptions(seed=0, max_epochs=4)
            states.append(train(SAGE(8, 3, hidden=16), graph, targets, options).state)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
