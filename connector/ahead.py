"""Fetch the next block while the last one is being worked on."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(blocks: Generator[T, None, None]) -> Iterator[T]:
    """Yield `blocks` in their order, each fetched in a thread while the one before is used.

    One thread does all the fetching and closes `blocks` at the end: a session of the driver must
    not be shared. An error comes out where its block would have.

    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    with ThreadPoolExecutor(1, "reading ahead") as thread:
        following = thread.submit(_next, blocks)
        try:
            while block := following.result():
                following = thread.submit(_next, blocks)
                yield block[0]
        finally:
            thread.submit(blocks.close).result()


def _next(blocks: Generator[T, None, None]) -> tuple[T] | None:
    for block in blocks:
        return (block,)
    return None
