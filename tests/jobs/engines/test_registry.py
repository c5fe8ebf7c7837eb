"""Engines by name: closed with the last project, and Ray only where it is asked for."""

import os
import subprocess
import sys
import tempfile

import numpy as np

from ringfence.jobs import inference
from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.engines import registry
from ringfence.jobs.engines.ray_engine import make_scratch, remove_left_behind
from ringfence.jobs.project.shared_resources import hold_resources
from tests.jobs.inference.test_table_pass import MAPPING, Line


def test_scoring_by_the_single_machine_imports_no_ray():
    code = (
        "import sys; from ringfence.jobs.scoring import score; "
        "from ringfence.jobs.engines import registry; "
        "from ringfence.jobs.config.engine import EngineSettings; "
        "registry.engine_of(EngineSettings()); print('ray' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "False"


def test_settings_that_change_close_the_engine_of_before(tmp_path):
    one = registry.engine_of(EngineSettings())
    assert registry.engine_of(EngineSettings()) is one
    assert registry.engine_of(EngineSettings(read_rows=5)) is not one
    line = Line(tmp_path)
    rows, found = line.score(np.arange(5))
    graph = inference.inference_graph(line.mirror, MAPPING)
    again = registry.engine_of(EngineSettings()).outputs_at(
        tmp_path / "other", line.model, line.mirror, MAPPING, graph, rows
    )
    assert np.array_equal(found.logits, again.logits)


def test_engines_end_with_the_last_one_that_holds_them():
    registry.close_engines()
    with hold_resources():
        with hold_resources():
            one = registry.engine_of(EngineSettings())
        assert registry.engine_of(EngineSettings()) is one  # another job goes on with it
    assert not registry._open


def test_folders_of_killed_commands_are_removed_and_those_in_use_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    used, held = make_scratch()
    left, ended = make_scratch()
    (left / "session").mkdir()
    ended.close()  # as the end of a process does
    (tmp_path / "rf-ray-of-somebody-else").mkdir()
    remove_left_behind(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [used.name, "rf-ray-of-somebody-else"]
    )
    held.close()
    with monkeypatch.context() as patched:
        patched.setattr(os, "getuid", lambda: used.stat().st_uid + 1)
        remove_left_behind(tmp_path)
    assert used.exists()  # another user's
    remove_left_behind(tmp_path)
    assert not used.exists()
