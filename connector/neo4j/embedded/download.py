"""Fetch jars from a Maven repository: in parallel, checked, and never half-named.

A jar is written beside its place under a name of its own, checked against the lock's SHA-256
and only then renamed: an interrupted download leaves nothing that looks whole, and two
processes downloading at once do each other no harm.
"""

import hashlib
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path

from ringfence.connector.errors import ServerError
from ringfence.connector.neo4j.embedded.jars import VERSION, Jar, ServerProgress

__all__ = ["download"]

PARALLEL_DOWNLOADS = 8  # most jars are small: the wait is latency, not bandwidth
ATTEMPTS = 4
SOCKET_TIMEOUT_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 0.5  # doubled after each failed attempt
REPORT_SECONDS = 0.2
CHUNK_BYTES = 1 << 16


class _DamagedError(Exception):
    """What arrived is not what the lock promises."""


class _CancelledError(Exception):
    """Another jar failed for good: this one need not be finished."""


def download(
    jars: Sequence[Jar], folder: Path, address: str, progress: Callable[[ServerProgress], None]
) -> None:
    """Put `jars` from the Maven repository at `address` into the local repository `folder`.

    Proxies and certificates come from the usual environment variables. Each jar is tried four
    times; the first that can't be had stops the others and raises ServerError. Whole jars stay,
    so the next call goes on where this one ended.
    """
    received = dict.fromkeys(jars, 0)
    stop = threading.Event()
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS, thread_name_prefix="jar") as pool:
        largest_first = sorted(jars, key=lambda jar: -jar.size)
        futures = {
            pool.submit(_fetch, jar, folder, address, received, stop): jar for jar in largest_first
        }
        try:
            _follow(futures, received, progress)
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _follow(
    futures: dict[Future[None], Jar],
    received: dict[Jar, int],
    progress: Callable[[ServerProgress], None],
) -> None:
    total, pending = sum(jar.size for jar in received), set(futures)
    while True:
        done = sum(future.done() for future in futures)
        progress(ServerProgress("download", done, len(futures), sum(received.values()), total))
        if not pending:
            return
        finished, pending = wait(pending, REPORT_SECONDS, FIRST_EXCEPTION)
        for future in finished:
            future.result()


def _fetch(
    jar: Jar, folder: Path, address: str, received: dict[Jar, int], stop: threading.Event
) -> None:
    for attempt in range(ATTEMPTS):
        try:
            _fetch_once(jar, folder, address, received, stop)
        except (OSError, _DamagedError) as error:  # timeouts and URLError are OSErrors
            received[jar] = 0
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # it holds the connection open
            last = attempt == ATTEMPTS - 1 or _is_final(error)
            if last or stop.wait(FIRST_PAUSE_SECONDS * 2**attempt):
                raise _unavailable(jar, address, error) from error
        else:
            return


def _fetch_once(
    jar: Jar, folder: Path, address: str, received: dict[Jar, int], stop: threading.Event
) -> None:
    target = folder / jar.path
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with (
            urllib.request.urlopen(f"{address}/{jar.path}", timeout=SOCKET_TIMEOUT_SECONDS) as body,  # noqa: S310
            partial.open("wb") as file,
        ):
            digest = hashlib.sha256()
            while chunk := body.read(CHUNK_BYTES):
                if stop.is_set():
                    raise _CancelledError
                file.write(chunk)
                digest.update(chunk)
                received[jar] += len(chunk)
        if digest.hexdigest() != jar.sha256:
            raise _DamagedError(f"SHA-256 {digest.hexdigest()} instead of {jar.sha256}")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _is_final(error: Exception) -> bool:
    # a retry doesn't change a 4xx, except "too many requests" and "timed out"
    return (
        isinstance(error, urllib.error.HTTPError)
        and 400 <= error.code < 500
        and error.code not in (408, 429)
    )


def _unavailable(jar: Jar, address: str, error: Exception) -> ServerError:
    return ServerError(
        found=f"{address}/{jar.path} could not be downloaded: {error}",
        needed=f"the jars of Neo4j {VERSION}, once, from a Maven repository",
        next_step=(
            "check the network (HTTPS_PROXY for a proxy, RINGFENCE_MAVEN_URL for a mirror) and "
            "type the same command again: jars already here are kept. Or use a Neo4j of your "
            'own: [neo4j] uri = "bolt://host:7687"'
        ),
    )
