"""Arrays in mapped files: they keep what they hold, and never go on in another file."""

import numpy as np
import pytest

from ringfence.jobs.inference.mapped_arrays import MappedArrays


def test_an_array_that_grows_keeps_what_it_held(tmp_path):
    arrays = MappedArrays(tmp_path)
    arrays("a", (4, 2), np.float32)[:] = 7
    assert (arrays("a", (1_000, 2), np.float32)[:4] == 7).all()
    assert (MappedArrays(tmp_path)("a", (4, 2), np.float32) == 7).all()
    assert arrays("nothing", (0, 3), np.float32).shape == (0, 3)
    assert arrays.are_on_disk()


def test_a_file_that_was_removed_or_replaced_is_no_longer_grown(tmp_path):
    """Its first rows would be nothing but zeros."""
    arrays = MappedArrays(tmp_path)
    held = arrays("a", (4,), np.int64)
    held[:] = 7
    (tmp_path / "a").unlink()
    assert not arrays.are_on_disk()
    assert (arrays("a", (4,), np.int64) == 7).all()  # pages of a removed file stay
    with pytest.raises(FileNotFoundError, match="another file is in its place"):
        arrays("a", (1_000,), np.int64)
    (tmp_path / "a").write_bytes(bytes(8_000))
    assert not arrays.are_on_disk()
    with pytest.raises(FileNotFoundError):
        arrays("a", (1_000,), np.int64)
    assert (MappedArrays(tmp_path)("a", (4,), np.int64) == 0).all()
