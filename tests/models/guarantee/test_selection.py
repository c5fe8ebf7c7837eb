"""The running sum of comparisons within runs is to the bit the sum of everything."""

import math

from hypothesis import given
from hypothesis import strategies as st

from ringfence.models.guarantee.selection import ExactSum

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e200, max_value=1e200)


@given(st.lists(finite, max_size=30))
def test_after_every_addend_it_is_what_fsum_of_all_says(addends):
    total = ExactSum()
    assert total.value == 0.0
    for end, addend in enumerate(addends, start=1):
        total.add(addend)
        assert total.value == math.fsum(addends[:end])
