"""Disks of workers on Ray that lose a partition, between two runs and inside one."""

import os
import shutil

import numpy as np

from ringfence.jobs.config.engine import EngineSettings
from tests.jobs.engines.ray_projects import DyingEngine

METHODS = ("open", "update", "needs 0", "compute 0", "compute 1", "outputs", "seal")


class Disk:
    """The folder in which workers keep their partitions."""

    def __init__(self, folder):
        self.folder = folder

    def lose(self, number):
        """Remove a partition's folder; return how many files went."""
        (place,) = self.folder.glob(f"*/part-{number}-of-2")
        files = sum(path.is_file() for path in place.rglob("*"))
        shutil.rmtree(place)
        return files

    def lose_file(self, number, name):
        """Remove one of a partition's files."""
        (path,) = self.folder.glob(f"*/part-{number}-of-2/*/{name}")
        path.unlink()
        return 1

    def cut_file(self, number, name):
        """Take all that a mapped file holds: whoever touches it is killed by the system."""
        (path,) = self.folder.glob(f"*/part-{number}-of-2/*/{name}")
        os.truncate(path, 0)
        return 1


def engine_on(disk):
    return DyingEngine(
        EngineSettings(kind="ray", partitions=2, object_store_mb=80, worker_folder=disk.folder)
    )


def check_lost_disk(folder, project):
    """By what was lost and when: files that went, differing numbers, deaths, what was said.

    Then the same of the run after it, in which nothing is lost.
    """
    disk, told = Disk(folder / "disks"), {}
    engine = engine_on(disk)

    def run(nodes=30):
        project.grow(nodes)
        lost = engine.lost
        differing, sentence = project.differing(engine, np.arange(project.mirror.size))
        project.finish(engine)
        return [differing, engine.lost - lost, sentence]

    run()
    for name, harm in (
        ("between runs", lambda: disk.lose(1)),
        ("a file between runs", lambda: disk.lose_file(1, "second")),
        ("a mapped file is cut", lambda: disk.cut_file(1, "second")),
    ):
        told[name] = [harm(), run(), run()]
    engine.strikes_first = True
    for method in METHODS:
        went = []
        engine.strike = lambda _watched, number, went=went: went.append(disk.lose(number))
        engine.dies_at = method
        struck = run()
        told[method] = [sum(went), struck, run()]
    engine.close()
    told["between processes"] = [disk.lose(0), run(), run()]
    engine.close()
    return told
