"""The engine on Ray: partitions are actors of a cluster that exists, or is started here.

A cluster that is started here listens on this machine alone, requires a token that only this
process has, sends no usage statistics, and ends with the command; Ray's own reaper ends it if the
command is killed.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import socket
import tempfile
import zlib
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from ringfence.connector.errors import ConfigError, ServerError
from ringfence.connector.hosts import is_loopback
from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.engines.ownership_file import ownership_folder
from ringfence.jobs.engines.partitioned import PartitionedEngine
from ringfence.jobs.engines.workers import Workers

CLUSTER, WORKERS = "ringfence.jobs.engines.ray_cluster", "ringfence.jobs.engines.ray_workers"
SCRATCH, LOCK = "rf-ray-", "lock"  # short, since Ray's sockets have their paths below it
SESSIONS = "r"  # Ray opens its own folder to all users; the one above it stays closed
PROCESSES = Path("/proc")
# Ray's switch for systems whose firewall asks: addresses are those of loopback, none is reachable.
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


class RayEngine(PartitionedEngine):
    """Passes over actors; the cluster is found or started by the first pass."""

    def __init__(self, settings: EngineSettings) -> None:
        super().__init__("ray")
        if find_spec("ray") is None:
            raise ConfigError(
                found='[engine] kind = "ray", but Ray is not installed',
                needed="the extra `ray`",
                next_step="pip install 'ringfence[ray]'",
            )
        self.settings = settings
        self._workers: Any = None
        self._cluster: Any = None
        self._scratch: Path | None = None
        self._held: IO[bytes] | None = None

    def open_workers(self, folder: Path) -> Workers:
        """Return the actors of a project."""
        place = ownership_folder(folder)
        if self.settings.worker_folder is not None:
            place = self.settings.worker_folder / _name_of(place)
        if self._workers is not None and self._workers.folder != place:
            self._workers.close()
            self._workers = None
        if self._workers is None:
            if self._cluster is None:
                self._connect()
            self._workers = import_module(WORKERS).RayWorkers(self.settings, place)
        opened: Workers = self._workers
        return opened

    def close(self) -> None:
        """End the actors, and the cluster where it was started here."""
        if self._workers is not None:
            self._workers.close()
        if self._cluster is not None:
            self._cluster.disconnect()
        self._workers = self._cluster = None
        if self._scratch is not None:
            _end_processes(self._scratch)
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None
        if self._held is not None:
            self._held.close()
            self._held = None

    def _connect(self) -> None:
        """Ray reads its environment when it is imported, so it is set before."""
        settings, wanted = self.settings, dict(ENVIRONMENT)
        if not settings.address:
            wanted |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
            wanted |= ON_LOOPBACK
            remove_left_behind(Path(tempfile.gettempdir()))
            self._scratch, self._held = make_scratch()
        elif is_loopback(settings.address.rpartition(":")[0]):
            wanted |= ON_LOOPBACK  # Ray would look for a head at this machine's outer address
        for name, value in wanted.items():
            os.environ.setdefault(name, value)
        self._cluster = import_module(CLUSTER)
        try:
            self._cluster.connect(settings, self._scratch and self._scratch / SESSIONS)
        except ServerError:
            self.close()
            raise


def _name_of(folder: Path) -> str:
    """A name that no other project has which shares the disk of a worker."""
    owner = zlib.crc32(f"{socket.gethostname()}:{folder.resolve()}".encode())
    return f"{folder.parent.name}-{folder.name}-{owner:08x}"


def make_scratch() -> tuple[Path, IO[bytes]]:
    """Make a folder for a cluster's files; its lock is held while this process lives."""
    folder = Path(tempfile.mkdtemp(prefix=SCRATCH))
    held = (folder / "new").open("wb")
    fcntl.flock(held, fcntl.LOCK_EX)
    (folder / "new").rename(folder / LOCK)  # it is never visible unlocked
    return folder, held


def remove_left_behind(temporary: Path) -> None:
    """Remove the cluster folders of this user's killed commands: those whose lock is free.

    A folder that another user made is left alone: its name could be the beginning of a live one's.
    """
    for lock in temporary.glob(f"{SCRATCH}*/{LOCK}"):
        with suppress(OSError), lock.open("r+b") as file:
            if lock.parent.lstat().st_uid == os.getuid() and not lock.parent.is_symlink():
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _end_processes(lock.parent)
                shutil.rmtree(lock.parent, ignore_errors=True)


def _end_processes(scratch: Path) -> None:
    """End what a cluster that failed to start, or to stop, left: its folder is in each command."""
    for place in PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if os.fsencode(scratch) in (place / "cmdline").read_bytes():
                os.kill(int(place.name), signal.SIGKILL)
