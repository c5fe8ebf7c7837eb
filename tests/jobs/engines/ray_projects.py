"""A project for checks of Ray, without torch: a mirror on disk, a model, and how workers die."""

import contextlib
import os
import signal

import numpy as np

from ringfence.connector.mapping import RelationMapping, map_one_label
from ringfence.connector.mirror import NodeBlock, create, load, save
from ringfence.jobs import inference
from ringfence.jobs.engines.local import LocalEngine
from ringfence.jobs.engines.ray_engine import RayEngine
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import Scaling

MAPPING = map_one_label("N", "id", "x", "c", "t", "zoned", (RelationMapping(0, "R", 0),))


class Project:
    """A mirror in `folder` that is loaded where there is one, and a model of some weights."""

    def __init__(self, folder, network, weights, nodes, width, classes, degree=5):
        self.folder, self.rng = folder, np.random.default_rng(5)
        self.mirror = load(folder / "mirror", "g")
        self.width, self.degree = width, degree
        scaling = Scaling(np.zeros(width, np.float32), np.ones(width, np.float32))
        manifest = {"network": network, "options": {}, "classes": list("abcdefghij")[:classes]}
        self.model = SavedModel("v", weights, scaling, np.zeros(1), manifest)
        if self.mirror is None:
            self.mirror = create(folder / "mirror", "g", width)
            self.grow(nodes)
            save(self.mirror, folder / "mirror")

    def grow(self, nodes):
        mirror, rng = self.mirror, self.rng
        mirror.advance()
        first = mirror.size
        keys = [f"i:{i}" for i in range(first, first + nodes)]
        features = rng.standard_normal((nodes, self.width), dtype=np.float32)
        mirror.add_nodes([NodeBlock(keys, features, [None] * nodes, np.arange(nodes), [])])
        source = np.repeat(np.arange(first, first + nodes), self.degree)
        mirror.adjacency.add(source, rng.integers(0, mirror.size, len(source)), 0, mirror.version)
        mirror.add_relationships([])

    def differing(self, engine, wanted):
        """Numbers that differ from the local engine's, and what the pass says of itself."""
        graph = inference.inference_graph(self.mirror, MAPPING)
        arguments = (self.model, self.mirror, MAPPING, graph, wanted)
        found = engine.outputs_at(self.folder / "ray", *arguments)
        local = LocalEngine(engine.settings).outputs_at(self.folder / "local", *arguments)
        same = found.logits.view(np.int32) == local.logits.view(np.int32)
        return int((~same).sum()), found.sentence

    def finish(self, engine):
        """Save the mirror, and let what was kept be used by the next run."""
        save(self.mirror, self.folder / "mirror")
        engine.close_tables(self.folder / "ray", self.model, self.mirror)
        inference.close_tables(self.folder / "local", self.model, self.mirror)


class DyingEngine(RayEngine):
    """An engine on Ray in which something dies inside a pass: at the first call of `dies_at`.

    That is a method of a host, with its layer if it has one ("compute 0"). It is struck after the
    call was sent, with `strikes_first` before.
    """

    def __init__(self, settings):
        super().__init__(settings)
        self.dies_at, self.strike, self.strikes_first = "", kill_worker, False
        self.watched = None

    def open_workers(self, folder):
        workers = super().open_workers(folder)
        if self.watched is None or self.watched.workers is not workers:
            self.watched = Watched(self, workers)
        return self.watched


class Watched:
    """Workers whose calls are looked at."""

    def __init__(self, engine, workers):
        self.engine, self.workers = engine, workers
        self.processes = workers.processes
        self.count, self.get = workers.count, workers.get

    def call(self, number, method, *arguments, returns=1):
        layer = f" {arguments[0]}" if method in ("needs", "give", "compute") else ""
        strikes = method + layer == self.engine.dies_at
        if strikes:
            self.engine.dies_at = ""
        if strikes and self.engine.strikes_first:
            self.engine.strike(self, number)
        found = self.workers.call(number, method, *arguments, returns=returns)
        if strikes and not self.engine.strikes_first:
            self.engine.strike(self, number)
        return found

    def revive(self):
        from ray.exceptions import RayActorError  # Ray reads its settings when it is imported

        self.workers.revive()
        # a new worker may have been placed on a node that is dying; the pass revives it again
        with contextlib.suppress(RayActorError):
            self.processes = self.workers.processes


def kill_worker(watched, number):
    os.kill(watched.processes[number], signal.SIGKILL)


def kill_driver(_watched, _number):
    os.kill(os.getpid(), signal.SIGKILL)
