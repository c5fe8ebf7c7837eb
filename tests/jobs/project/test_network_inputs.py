import numpy as np
import pytest

from ringfence.jobs.project.network_inputs import Scaling


@pytest.mark.parametrize("step", [0.0, 1e-46, 1e-30, 1.0])
def test_a_column_that_hardly_varies_stays_finite(step):
    wide = np.array([[0.0, 1.0], [step, 3.0]])
    features = wide.astype(np.float32)
    scaling = Scaling.of(features)
    assert np.all(scaling.spread > 0)
    assert np.all(np.isfinite(scaling(features)))


def test_a_spread_below_the_smallest_float32_counts_as_none():
    smallest = np.float32(1e-45)  # the only number of the column besides 0, one time in nine
    features = np.zeros((9, 1), np.float32)
    features[0] = smallest
    assert Scaling.of(features).spread.tolist() == [1.0]
