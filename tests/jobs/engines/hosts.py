"""Partition hosts in this process, in the place of workers on other machines."""

import copy
from pathlib import Path

from ringfence.jobs.engines.partition_host import PartitionHost
from ringfence.jobs.engines.partitioned import PartitionedEngine
from ringfence.jobs.engines.workers import WorkerLost


class HereWorkers:
    """Calls at once; answers are copies, as they would be after a journey.

    With `dies_at` the host of that call, counted from 1, is gone, with all that it had not closed.
    """

    def __init__(self, folder: Path, parts: int, dies_at: int = 0) -> None:
        self.folder, self.dies_at, self.calls = folder, dies_at, []
        self.hosts = [PartitionHost(str(folder), part, parts, 1) for part in range(parts)]

    @property
    def count(self):
        return len(self.hosts)

    def call(self, number, method, *arguments, returns=1):
        self.calls.append((number, method))
        if len(self.calls) == self.dies_at:
            self.hosts[number] = None
        host = self.hosts[number]
        lost = host is None or any(isinstance(one, WorkerLost) for one in arguments)
        if lost:
            return [WorkerLost(f"host {number} is gone")] * returns
        try:
            found = copy.deepcopy(getattr(host, method)(*arguments))
        except FileNotFoundError as gone:
            return [WorkerLost(str(gone))] * returns
        return [found] if returns == 1 else found

    def get(self, handles):
        for one in handles:
            if isinstance(one, WorkerLost):
                raise one
        return list(handles)

    def close_states(self, version):
        """The mirror of this version is saved."""
        assert all(host.close_state(version) for host in self.hosts)

    def revive(self):
        parts = self.count
        self.hosts = [
            PartitionHost(str(self.folder), part, parts, 1) if host is None else host
            for part, host in enumerate(self.hosts)
        ]


class HereEngine(PartitionedEngine):
    """An engine of partitions whose hosts are here."""

    def __init__(self, workers):
        super().__init__("here")
        self.workers = workers

    def open_workers(self, folder):
        return self.workers

    def close(self):
        pass
