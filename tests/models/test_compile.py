"""Kernels reach numba when the first of them is called, and find each other then."""

import subprocess
import sys

import numpy as np

CHECK = """
import sys
import numpy as np
from ringfence.models.inference.kernels import gcn, transform
from ringfence.models.inference.kernels.checksum import checksum
import ringfence.models.exchangeability.monitor
assert "numba" not in sys.modules
assert checksum(np.arange(3.0)) == checksum(np.arange(3.0))
assert "numba" in sys.modules
out = np.empty((1, 2), np.float32)  # calls `project`, of another module, which is compiled into it
transform.multiply_rows(0, 1, np.ones((1, 3), np.float32), np.ones((3, 2), np.float32), out)
assert out.tolist() == [[3.0, 3.0]]
from ringfence.models.scores.kernels import adaptive  # defined after numba was given the others
assert callable(adaptive.adaptive_scores)
"""


def test_numba_is_imported_by_the_first_call_of_a_kernel():
    subprocess.run([sys.executable, "-c", CHECK], check=True)


def test_a_kernel_that_came_later_is_handed_over_too():
    from ringfence.models.compile import compiled

    def double(x):
        return 2 * x

    first = compiled(double)
    assert first(4) == 8
    second = compiled(lambda x: x + 1)
    assert second(np.float64(1.0)) == 2.0
    assert first(np.float64(0.5)) == 1.0
