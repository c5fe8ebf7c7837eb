"""Half-open connections: closed within their time, and they keep nobody out."""

import asyncio
import contextlib
import socket
import threading
import time
from http.client import HTTPConnection

import pytest
import uvicorn

from ringfence.jobs.dashboard.connections import limit_requests
from tests.patience import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.slow

SECONDS = 3.0
HALF_OPEN = 200
BEGINNINGS = (
    b"",
    b"GET / HT",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: ",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /next HTTP/1.1\r\nX: ",
)


async def page(scope, receive, send):
    """Read the request whole, then answer."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"fine"})


@contextlib.contextmanager
def serving(app=page, **limits):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1, **limits
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)


def ask(port, body=None):
    """The status of an answer; a request that a busy machine sent too slowly is sent again."""

    def answer():
        with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)) as to:
            try:
                to.request("POST" if body else "GET", "/", body)
                return to.getresponse().status
            except ConnectionError:
                return None

    return wait_until(answer, "an answer")


@contextlib.contextmanager
def half_open(port, count=HALF_OPEN, beginnings=BEGINNINGS):
    with contextlib.ExitStack() as stack:
        opened = []
        for i in range(count):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(beginnings[i % len(beginnings)])
            connection.setblocking(False)
            opened.append(connection)
        yield opened


def is_closed(connection):
    """Whether the server ended a connection, after whatever it sent."""
    try:
        while True:
            if not connection.recv(65_536):
                return True
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("dripping", [False, True])
def test_half_open_connections_are_closed_in_time_while_the_page_answers(dripping):
    limits = {"http": limit_requests(SECONDS, 1_000), "timeout_keep_alive": int(SECONDS)}
    with serving(**limits) as port, half_open(port) as opened:
        waiting = list(opened)

        def all_are_closed():
            assert ask(port) == 200
            for connection in opened if dripping else ():
                with contextlib.suppress(OSError):
                    connection.send(b"y")  # a byte now and then gives no more time
            time.sleep(0.2)
            waiting[:] = [connection for connection in waiting if not is_closed(connection)]
            return not waiting

        wait_until(all_are_closed, "the end of half-open connections")
        assert ask(port, b"a whole body") == 200


def test_without_the_limit_they_stay_open():
    with serving() as port, half_open(port, 20) as opened:
        time.sleep(SECONDS + 1.5)
        assert sum(map(is_closed, opened)) <= 4  # uvicorn's own limit is for answered ones


def test_of_too_many_the_oldest_go_first_and_others_are_served():
    never_answered = BEGINNINGS[:4]
    with (
        serving(http=limit_requests(PATIENCE_SECONDS, 50)) as port,
        half_open(port, beginnings=never_answered) as opened,
    ):
        assert ask(port) == 200
        wait_until(lambda: sum(map(is_closed, opened)) >= HALF_OPEN - 50)
        assert not is_closed(opened[-1])
        assert is_closed(opened[0])
        assert sum(not is_closed(connection) for connection in opened) <= 50


def test_an_answer_may_take_longer_than_a_request():
    asked = []

    async def slow(scope, receive, send):
        asked.append(scope["path"])
        await asyncio.sleep(3 * limit_seconds)
        await page(scope, receive, send)

    limit_seconds = 0.5
    with serving(slow, http=limit_requests(limit_seconds, 50)) as port:
        assert ask(port) == 200
    assert len(asked) == 1  # no answer was cut off
