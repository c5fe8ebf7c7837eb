"""Connections that never finish their request are closed, and can't use up the process's files.

uvicorn ends a connection that is silent after an answer, but waits for ever for a request that was
begun, or never begun. Here a whole request has `REQUEST_SECONDS` from its connection or first byte
on, and of more than `MAX_UNFINISHED` such connections the oldest is closed: a client that opens
many only pushes out its own. A limit on all connections would let it keep everyone else out.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
MAX_UNFINISHED = 200  # of the 1,024 files that a process may usually have open


def limit_requests(seconds: float, most: int) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with a time limit for requests and a bound on unfinished ones."""
    unfinished: dict[LimitedProtocol, asyncio.TimerHandle] = {}  # oldest first

    class LimitedProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._begin()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
                self._end()
            elif self not in unfinished:  # the next request on an old connection
                self._begin()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end()
            super().connection_lost(exc)

        def _begin(self) -> None:
            unfinished[self] = self.loop.call_later(seconds, self.transport.abort)
            if len(unfinished) > most:
                oldest = next(iter(unfinished))
                oldest._end()  # at once: many may begin before its connection_lost comes
                oldest.transport.abort()

        def _end(self) -> None:
            if timer := unfinished.pop(self, None):
                timer.cancel()

    return LimitedProtocol


def request_limits() -> dict[str, Any]:
    """Return the options of `uvicorn.Config` that set these limits."""
    return {"http": limit_requests(REQUEST_SECONDS, MAX_UNFINISHED), "timeout_keep_alive": 5}
