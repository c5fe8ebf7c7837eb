"""What a partition is sent, cut into blocks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ringfence.jobs.engines import partitioned_pass
from ringfence.jobs.engines.partitioned_pass import split_update

ROWS = st.sets(st.integers(0, 200)).map(lambda rows: np.array(sorted(rows), np.int64))


@given(rows=ROWS, share=st.sampled_from((1, 2, 3, 1_000)), size=st.integers(1, 60))
def test_a_block_has_those_of_its_rows_that_are_described(rows, share, size):
    described = rows[rows % share == 0]
    before, partitioned_pass.ROWS_PER_UPDATE = partitioned_pass.ROWS_PER_UPDATE, size
    try:
        blocks = list(split_update(rows, described))
    finally:
        partitioned_pass.ROWS_PER_UPDATE = before
    assert np.array_equal(np.concatenate([block for block, _ in blocks]), rows)
    assert len(blocks) == max(1, -(-len(rows) // size))
    for block, own in blocks:
        assert np.array_equal(own, np.intersect1d(block, described))
