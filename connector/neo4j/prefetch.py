"""Fetch the next blocks while the last one is being worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Generic, TypeVar

T = TypeVar("T")

_AT_WORK: set[ThreadPoolExecutor] = set()
"""Executors of open streams. The thread of one that nothing refers to ends by itself: a stream that
is given up after an error, and collected with the error, would wait for it for ever."""


def prefetch(*streams: Generator[T, None, None]) -> Iterator[T]:
    """Yield the streams' blocks in turn, each fetched in a thread while others are used.

    All streams start at once and are one block ahead. One thread does all the fetching of a stream
    and closes it at the end: a session of the driver must not be shared. An error comes out where
    its block would have.

    >>> list(prefetch(n * n for n in range(4)))
    [0, 1, 4, 9]
    >>> list(prefetch((n for n in range(3)), (n for n in "ab")))
    [0, 'a', 1, 'b', 2]
    """
    with ExitStack() as open_:
        turns = deque([_Fetcher(stream, open_) for stream in streams])
        while turns:
            reader = turns.popleft()
            if block := reader.take():
                turns.append(reader)
                yield block[0]


class _Fetcher(Generic[T]):
    def __init__(self, blocks: Generator[T, None, None], open_: ExitStack) -> None:
        self._blocks = blocks
        thread = ThreadPoolExecutor(1, "prefetch")
        _AT_WORK.add(thread)
        open_.callback(_AT_WORK.discard, thread)
        self._thread = open_.enter_context(thread)
        open_.callback(lambda: self._thread.submit(blocks.close).result())
        self._following = self._thread.submit(_next, blocks)

    def take(self) -> tuple[T] | None:
        block = self._following.result()
        if block:
            self._following = self._thread.submit(_next, self._blocks)
        return block


def _next(blocks: Generator[T, None, None]) -> tuple[T] | None:
    for block in blocks:
        return (block,)
    return None
