"""A loopback TCP proxy between the driver and Neo4j that cuts connections where it is told to."""

import random
import select
import socket
import threading
from dataclasses import dataclass

COMMIT = bytes.fromhex("0002 B012 0000")  # Bolt: a chunk of two bytes, the COMMIT message, the end
PORTION = 65_536


@dataclass(slots=True)
class Cut:
    """Where to cut: before or after the nth COMMIT is forwarded, or at the nth portion of bytes."""

    kind: str
    nth: int


class Proxy:
    """Forwards to `port` of this machine; `cut` is carried out once, then all goes through."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.cut: Cut | None = None
        self.cuts = 0
        self.heard: list[tuple[str, bytes]] | None = None  # a list: who sent what, as it passes
        self._seen = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, cut: Cut | None) -> None:
        """Cut the next connection that gets that far."""
        with self._lock:
            self.cut, self._seen, self.cuts = cut, 0, 0

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            with server:
                try:
                    self._pump(client, server)
                except OSError:
                    return

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([client, server], [], [])
            for one in ready:
                data = one.recv(PORTION)
                if not data:
                    return
                if self.heard is not None:
                    self.heard.append(("client" if one is client else "server", data))
                due = self._due(data) if one is client else ""
                if due in ("before", "portion"):
                    return
                (server if one is client else client).sendall(data)
                if due == "after":
                    server.recv(PORTION)  # the server has committed; nobody will hear of it
                    return

    def _due(self, data: bytes) -> str:
        with self._lock:
            if self.cut is None:
                return ""
            counts = COMMIT in data if self.cut.kind != "portion" else True
            self._seen += counts
            if not counts or self._seen != self.cut.nth:
                return ""
            self.cuts += 1
            kind, self.cut = self.cut.kind, None
            return kind


def some_cut(kind: str, chance: random.Random) -> Cut:
    """A cut of `kind` at a place that most runs reach."""
    return Cut(kind, chance.randint(2, 40) if kind == "portion" else chance.randint(1, 18))
