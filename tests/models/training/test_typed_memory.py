"""What training takes is predicted from counts, and decides between full passes and batches."""

import subprocess
import sys

import pytest

from ringfence.models.schema import Relation, TypedSchema
from ringfence.models.training.typed_memory import (
    BATCH_SIZE,
    TrainingSize,
    choose_batch_size,
    predict_bytes,
)

SCHEMA = TypedSchema(("Flight", "Airport"), (Relation(0, "FROM", 1), Relation(0, "TO", 1)))


def size_of(flights, width=40):
    return TrainingSize(SCHEMA, (flights, 1_000), (width, 60), (flights, flights), hidden=64)


@pytest.mark.slow
def test_a_graph_beyond_the_limit_is_trained_in_batches():
    assert choose_batch_size(size_of(100_000), None) == 0
    assert choose_batch_size(size_of(10_000_000), None) == BATCH_SIZE
    assert choose_batch_size(size_of(10_000_000), 0) == 0  # as asked for
    assert choose_batch_size(size_of(10), 64) == 64


@pytest.mark.parametrize("batch_size", [0, 512])
def test_more_of_anything_needs_more(batch_size):
    least = predict_bytes(size_of(100_000), batch_size)
    assert predict_bytes(size_of(200_000), batch_size) > least
    assert predict_bytes(size_of(100_000, width=400), batch_size) > least


MEASURED = """
import re, numpy as np, torch
from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train as fit
from ringfence.models.training.typed_data import select_typed
from tests.models.training.test_typed_memory import SCHEMA, size_of
torch.set_num_threads(1)
n, ports = 60_000, 1_000
# of this program alone: getrusage begins with the peak of the process that started it
def peak(): return 1024 * int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])
def train(n):
    rng = np.random.default_rng(0)
    x = [rng.normal(size=one).astype(np.float32) for one in ((n, 40), (ports, 60))]
    to = n + rng.integers(0, ports, (2, n))
    edges = np.concatenate([np.stack([np.arange(n), to[k], np.full(n, k)]) for k in (0, 1)], axis=1)
    rows = (np.arange(n), np.arange(n, n + ports))
    data = select_typed(SCHEMA, x, edges, rows, n + ports)
    network = build_typed("typed_sage", SCHEMA, (40, 60), 4, hidden=64)
    y = torch.from_numpy(rng.integers(0, 4, n))
    nodes = torch.arange(n)
    targets = TrainingTargets(y, nodes[::2], nodes[1::2])
    fit(network, data, targets, TrainingOptions(seed=1, max_epochs=2))
train(500)
before = peak()
train(n)
print(peak() - before)
"""


@pytest.mark.long
def test_the_prediction_is_no_less_than_what_a_full_pass_takes():
    """Nor is it many times more, for it refuses to train."""
    done = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    taken, told = int(done.stdout), predict_bytes(size_of(60_000), 0)
    assert taken < told < 4 * taken, (taken, told)
