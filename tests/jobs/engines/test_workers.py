import errno
import os

import pytest

from ringfence.jobs.engines.workers import is_short_of_memory


@pytest.mark.parametrize(
    ("cause", "limit", "short"),
    [
        (MemoryError(), None, True),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), None, True),
        (OSError("libm.so: failed to map segment from shared object"), 10, True),
        (OSError("libm.so: cannot open shared object file"), None, False),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 10, False),
        (ValueError("another fault"), 10, False),
        (None, 10, False),
    ],
)
def test_a_worker_without_memory_is_told_from_one_with_another_fault(cause, limit, short):
    assert is_short_of_memory(cause, limit) is short
