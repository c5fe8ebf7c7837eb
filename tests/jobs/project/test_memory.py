"""What a graph will need is said before it is read."""

import doctest
import re

from ringfence.jobs.project import memory
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.models.inference import state


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(memory).failed == 0


def test_more_of_anything_needs_more():
    least = memory.predict(1_000, 10_000, 16)
    for more in (
        memory.predict(2_000, 10_000, 16),
        memory.predict(1_000, 20_000, 16),
        memory.predict(1_000, 10_000, 32),
    ):
        assert (more.train, more.disk) > (least.train, least.disk)


def test_the_kept_sums_are_counted_at_their_size():
    assert memory.MAX_SUM_ROWS == state.MAX_SUM_SLOTS


def test_doctor_predicts_the_memory_and_warns_where_there_is_too_little(
    grown, tmp_path, monkeypatch
):
    settings = grown.workspace.settings
    monkeypatch.setattr("ringfence.jobs.setup.doctor.load", lambda _path: settings)
    (found,) = [one for one in run_doctor(None) if "of disk" in one.text]
    assert found.level == "ok"
    assert re.search(r"scoring needs about 2\d\d MB", found.text)  # hardly more than Python itself
    monkeypatch.setattr(memory, "available", lambda: 1e6)
    (found,) = [one for one in run_doctor(None) if "of disk" in one.text]
    assert (found.level, "1 MB of memory are free" in found.text) == ("warning", True)
