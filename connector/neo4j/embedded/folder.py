"""The data folder of an embedded server: its files, and who may read them.

server.json       the running server: process id, address, since     (0600)
credentials.env   RINGFENCE_NEO4J_URI, _USER and _PASSWORD           (0600, a secret)
neo4j.conf        the settings of the last start
data/             the graph
logs/             server.log (the process), debug.log (Neo4j)
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ringfence.connector.errors import ServerError
from ringfence.connector.files import PRIVATE, make_private_folder, write_atomically

__all__ = ["USER", "DataFolder", "ServerInfo"]

USER = "neo4j"
OLD_LOGS_KEPT = 3
LOG_TAIL_LINES = 12  # lines


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A running server: where it answers, with which login, and where it lives."""

    uri: str
    user: str
    password: str
    pid: int
    port: int
    version: str
    started_at: float  # seconds since 1970
    data_dir: Path
    log: Path
    credentials: Path  # a shell file with the address and the login

    def __repr__(self) -> str:  # the password stays out of logs and tracebacks
        return f"ServerInfo(uri={self.uri!r}, user={self.user!r}, pid={self.pid})"


@dataclass(frozen=True, slots=True)
class ServerState:
    """What the server's process writes down once it answers."""

    pid: int
    port: int
    version: str
    started_at: float


class DataFolder:
    """Names and files of one data folder.

    >>> DataFolder(Path("/srv/graph")).state_file
    PosixPath('/srv/graph/server.json')
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.state_file = self.path / "server.json"
        self.credentials_file = self.path / "credentials.env"
        self.configuration_file = self.path / "neo4j.conf"
        self.start_lock = self.path / "start.lock"
        self.server_lock = self.path / "server.lock"
        self.logs = self.path / "logs"
        self.log = self.logs / "server.log"

    def create(self) -> None:
        """Make the folder, closed to other users; an existing one is left as it is."""
        make_private_folder(self.logs)

    def state(self) -> ServerState | None:
        """What `server.json` says; None where there is none or it can't be read as one."""
        try:
            return ServerState(**json.loads(self.state_file.read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return None

    def password(self) -> str | None:
        """The password in `credentials.env`, None where there is none."""
        return self._credentials().get("RINGFENCE_NEO4J_PASSWORD") or None

    def last_port(self) -> int:
        """The port of the last start, 0 where there was none."""
        _, _, port = self._credentials().get("RINGFENCE_NEO4J_URI", "").rpartition(":")
        return int(port) if port.isdecimal() else 0

    def write_credentials(self, password: str, port: int) -> None:
        """Write `credentials.env`, to be read by a shell: `set -a; . credentials.env`."""
        lines = {
            "RINGFENCE_NEO4J_URI": f"bolt://127.0.0.1:{port}",
            "RINGFENCE_NEO4J_USER": USER,
            "RINGFENCE_NEO4J_PASSWORD": password,
        }
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        write_atomically(self.credentials_file, text, mode=PRIVATE)

    def _credentials(self) -> dict[str, str]:
        try:
            text = self.credentials_file.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return {}
        pairs = (line.partition("=") for line in text.splitlines())
        return {name: value for name, _, value in pairs}

    def info(self, state: ServerState) -> ServerInfo:
        """The running server that `state` describes, with its login."""
        password = self.password()
        if password is None:
            raise ServerError(
                found=f"a server runs on {self.path}, but {self.credentials_file} is gone",
                needed="its password",
                next_step="stop the server and start it again: a start sets a new password",
            )
        return ServerInfo(
            uri=f"bolt://127.0.0.1:{state.port}",
            user=USER,
            password=password,
            **asdict(state),
            data_dir=self.path,
            log=self.log,
            credentials=self.credentials_file,
        )

    def log_tail(self) -> list[str]:
        """The last lines of the server's log."""
        if not self.log.exists():
            return []
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]

    def rotate_log(self) -> None:
        """Start a new `server.log`; the last three stay as server.log.1 to .3."""
        for number in range(OLD_LOGS_KEPT, 0, -1):
            older = self.log.with_name(f"{self.log.name}.{number}")
            newer = self.log.with_name(f"{self.log.name}.{number - 1}") if number > 1 else self.log
            if newer.exists():
                newer.replace(older)
