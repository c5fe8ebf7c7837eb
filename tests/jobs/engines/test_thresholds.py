"""What a run decides over partitions is what it decides on one machine, for every promise."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from ringfence.connector.store.models import active_manifest
from ringfence.jobs.config.conformal import ConformalSettings
from ringfence.jobs.engines import registry
from ringfence.jobs.engines.ownership_file import ownership_folder
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import read_graph
from ringfence.jobs.project.session import write_session
from ringfence.jobs.scoring.decision import decide_due
from ringfence.jobs.telemetry.stopwatch import Stopwatch
from ringfence.jobs.training.train import run_training
from tests.jobs.engines.hosts import HereEngine, HereWorkers
from tests.stores import sqlite

pytestmark = [pytest.mark.long, sqlite]
PROMISES = [
    {"rule": "NodeEx"},
    {"rule": "EdgeEx"},
    {"rule": "EdgeEx", "edge_test_weight": "exact"},
    {"score": "APS"},
    {"score": "TPS"},
    {"score": "RAPS"},
    {"score": "DTPS"},
    {"alpha": [0.1, 0.2]},
    {"promise": "class"},
    {"promise": "group", "group": "zone", "alpha": 0.2},
    {"promise": "group", "group": "zone", "alpha": 0.2, "rule": "NodeEx"},
    {"weights": "shift"},
    {"calibration_set": "frozen"},
    {"drift_half_life_days": 30.0},
]
ZONES = "MATCH (n:Account) SET n.zone = CASE n.id % 3 WHEN 0 THEN 'north' WHEN 1 THEN 'south' END"


class ABitOff(HereEngine):
    """An engine whose last output has another last bit."""

    def outputs_at(self, *arguments):
        found = super().outputs_at(*arguments)
        found.logits[-1] = np.nextafter(found.logits[-1], np.float32(np.inf))
        return found


def differences(one, other, where=""):
    """Where two decisions differ, in whatever depth."""
    if is_dataclass(one):
        return [
            found
            for field in fields(one)
            if field.name not in ("notes", "config", "started_ns")
            for found in differences(
                getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}"
            )
        ]
    if isinstance(one, np.ndarray):
        same = one.dtype == other.dtype and one.tobytes() == other.tobytes()
        return [] if same else [where]
    if isinstance(one, Sequence) and not isinstance(one, str):
        pairs = [differences(a, b, where) for a, b in zip(one, other, strict=True)]
        return [found for pair in pairs for found in pair]
    return [] if one == other or repr(one) == repr(other) else [where]


def decisions(workspace, ray=HereEngine):
    """What a run would decide with each engine; nothing of it is written."""

    def quiet(_what, _done, _all):
        pass

    engine = workspace.settings.engine
    with write_session(workspace, quiet) as session:
        read = read_graph(workspace, session.writer, quiet)
        recorded = active_manifest(workspace.store, workspace.project)
        model = model_files.load_model(workspace.models, recorded)
        for kind in ("local", "ray"):
            chosen = engine.model_copy(update={"kind": kind})
            settings = workspace.settings.model_copy(update={"engine": chosen})
            if kind == "ray":
                place = ownership_folder(workspace.tables)
                registry._open["ray"] = (chosen, ray(HereWorkers(place, 3)))
            _, decision = decide_due(
                replace(workspace, settings=settings), model, read, Stopwatch()
            )
            yield decision


def test_every_promise_is_decided_as_on_one_machine(grown):
    grown.arrive(grown.later[0])
    grown.workspace.graph.run(ZONES)
    bands = set()
    for number, promise in enumerate(PROMISES):
        own = {"project": f"p{number}", "conformal": ConformalSettings(**promise)}
        workspace = replace(
            grown.workspace, settings=grown.workspace.settings.model_copy(update=own)
        )
        run_training(workspace)
        local, divided = decisions(workspace)
        assert local is not None, promise
        assert "forward pass over 3 partitions" in divided.facts.notes[0], promise
        assert differences(local, divided) == [], promise
        assert len(local.thresholds) > 0, promise
        bands |= {one.band.rpartition(" in ")[2] for one in local.thresholds}
    assert bands >= {"zone=north", "zone=south", "no zone"}  # groups were judged apart
    local, divided = decisions(workspace, ABitOff)
    assert differences(local, divided) != []  # one bit of one output is seen
