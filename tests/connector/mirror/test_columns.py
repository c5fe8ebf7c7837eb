"""Columns in files: rows taken without a map, pages let go, values that are shown kept."""

import numpy as np

from ringfence.connector.mirror.columns import Column


def column(folder, rows=5_000):
    found = Column(folder / "c", np.float32, 3)
    found.append(np.arange(3 * rows, dtype=np.float32).reshape(rows, 3))
    return found


def test_rows_are_taken_without_a_map_of_the_file(tmp_path):
    one = column(tmp_path)
    assert one.take(np.array([4_999, 0])).tolist() == [[14997, 14998, 14999], [0, 1, 2]]
    assert one._mapped is None
    assert one.take(np.empty(0, np.int64)).shape == (0, 3)


def test_pages_that_were_let_go_come_back_as_they_were(tmp_path):
    one = column(tmp_path)
    before = one.array.sum()
    one.release()
    assert one.array.sum() == before


def test_values_that_are_shown_outlive_a_release(tmp_path):
    one = column(tmp_path)
    one.show(np.array([7]), np.full((1, 3), -1, np.float32))
    assert one.array[7].tolist() == [-1, -1, -1]
    one.release()
    assert one.array[7].tolist() == [-1, -1, -1]
    assert one.take(np.array([7])).tolist() == [[-1, -1, -1]]
