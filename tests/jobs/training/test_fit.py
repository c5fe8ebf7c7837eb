"""Training is refused, with words, where the memory would not be enough."""

import pytest

from ringfence.connector.errors import ModelError
from ringfence.jobs.project import memory
from ringfence.jobs.training.fit import refuse_without_memory


def test_too_little_memory_is_said_before_training(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1e9)
    refuse_without_memory(0.9e9)
    with pytest.raises(ModelError, match=r"needs about 2.0 GB of memory, 1.0 GB are free") as error:
        refuse_without_memory(2e9)
    assert "batch_size" in error.value.next_step


def test_a_container_may_have_less_than_its_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path)
    everything = memory.available()
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("2500000\n")
    (tmp_path / "memory.stat").write_text("anon 9\ninactive_file 100000\n")
    assert memory.available() == 600_000 < everything
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available() > 600_000
