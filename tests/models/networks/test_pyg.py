"""PyG's generated code: it works, and no file of it remains in the temporary folder."""

import os
import subprocess
import sys

import pytest

from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

USE_ALL = """
import inspect, sys, torch
{control}
from ringfence.models.networks import NETWORKS, build
x, edges = torch.zeros(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])
for name in NETWORKS:
    build(name, in_features=5, classes=3, hidden=16)(x, edges).sum().backward()
made = [name for name in sys.modules if name.endswith("_propagate")]
assert made, "PyG generates no files any more: models/networks/pyg.py can forget them"
assert "def propagate" in inspect.getsource(sys.modules[made[0]].propagate)
"""
CONTROL = """
from pathlib import Path
Path.unlink = lambda *_: None
"""


@pytest.mark.long
@pytest.mark.parametrize("control", ["", CONTROL], ids=["", "control"])
def test_no_file_remains_in_the_temporary_folder(tmp_path, control):
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    subprocess.run(
        [sys.executable, "-c", USE_ALL.format(control=control)],
        env=environment | {"TMPDIR": str(tmp_path)},
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    # torch makes one empty folder per user there, torchinductor_<user>: not one per process
    remaining = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert bool(remaining) is bool(control), remaining
