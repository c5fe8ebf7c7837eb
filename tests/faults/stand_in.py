"""A proxy before a real Neo4j that answers some statements as another server would.

Community Edition has no roles. What an Enterprise or Aura server answers to a user with few rights
is put in its place on the wire: the text of a query, so that the real server answers another one
with the same columns, or the refusal of a statement, in that server's words.
"""

import select
import socket
import struct
from collections.abc import Callable

from neo4j._codec.packstream._common import PackableBuffer, UnpackableBuffer
from neo4j._codec.packstream.v1 import Packer, Unpacker

from tests.faults.proxy import PORTION, Proxy

RUN = b"\xb3\x10"  # Bolt: a structure of three fields, the first is the query
FAILURE = b"\xb1\x7f"
FORBIDDEN = "Neo.ClientError.Security.Forbidden"
Refusal = tuple[str, str]  # code and message
DENIED = "error: syntax error or access rule violation - permission/access denied"


class StandIn(Proxy):
    """`queries` replaces texts of queries; a query that holds a key of `refusals` is refused."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.queries: dict[str, str] = {}
        self.refusals: dict[str, str | tuple[str, str]] = {}  # a message, or its code and it
        self.replaced = 0

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        refusing: list[Refusal] = []  # what the server is to say next
        while True:
            ready, _, _ = select.select([client, server], [], [])
            for side in ready:
                data = side.recv(PORTION)
                if not data:
                    return
                if side is client:
                    server.sendall(self._asked(data, refusing))
                else:
                    client.sendall(_refused(data, refusing) if refusing else data)

    def _asked(self, data: bytes, refusing: list[Refusal]) -> bytes:
        def other(query: str) -> str | None:
            for part, message in self.refusals.items():
                if part in query:
                    refusing.append((FORBIDDEN, message) if isinstance(message, str) else message)
                    return "RETURN no_such_variable"
            return self.queries.get(query)

        for at in range(len(data)):
            if data.startswith(RUN, at) and (text := _text_at(data, at + len(RUN))):
                if (new := other(text)) is None:
                    continue
                rest = at + len(RUN) + len(_pack(text))
                self.replaced += 1
                return _exchange(data, at, lambda end, rest=rest, new=new: (
                    RUN + _pack(new) + data[rest:end]
                ))  # fmt: skip
        return data


def _refused(data: bytes, refusing: list[Refusal]) -> bytes:
    at = data.find(FAILURE)
    if at < 0:
        return data
    code, message = refusing.pop(0)
    failure = {
        "neo4j_code": code,
        "code": code,
        "message": message,
        "gql_status": "42NFF",
        "description": DENIED,
        "diagnostic_record": {},
    }
    return _exchange(data, at, lambda _: FAILURE + _pack(failure))


def _exchange(data: bytes, at: int, message: Callable[[int], bytes]) -> bytes:
    """Put another message in the place of the one that begins at `at`, behind its length."""
    end = at + int.from_bytes(data[at - 2 : at], "big")
    assert end <= len(data), "the message came in several portions"
    new = message(end)
    return data[: at - 2] + len(new).to_bytes(2, "big") + new + data[end:]


def _pack(value: object) -> bytes:
    buffer = PackableBuffer()
    Packer(buffer).pack(value)
    return bytes(buffer.data)


def _text_at(data: bytes, at: int) -> str | None:
    try:
        value = Unpacker(UnpackableBuffer(data[at:])).unpack()
    except (ValueError, UnicodeDecodeError, IndexError, struct.error):  # these bytes are no message
        return None
    return value if isinstance(value, str) else None
