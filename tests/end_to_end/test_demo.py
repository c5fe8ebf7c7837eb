"""The demo on a terminal: it ends with the dashboard open on its own data, until Ctrl-C."""

import os
import pty
import re
import select
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.patience import PATIENCE_SECONDS

COMMAND = [sys.executable, "-c", "from ringfence.jobs.cli.app import main; main()"]
OPEN = re.compile(r"The dashboard is open at (http://127\.0\.0\.1:\d+/)\s")


def read_until(terminal, process, pattern):
    """What the process has written by the time `pattern` matches it, or it has ended."""
    text, end = "", time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                text += os.read(terminal, 65_536).decode(errors="replace")
            except OSError:  # the other end is closed
                return text
        elif process.poll() is not None:
            return text
        if pattern.search(text):
            return text
    return text


@pytest.mark.long
@pytest.mark.neo4j
def test_on_a_terminal_the_demo_stays_open_until_ctrl_c(tmp_path):
    ours, theirs = pty.openpty()
    quiet = {"CI", "DISPLAY", "WAYLAND_DISPLAY"}
    environment = {name: value for name, value in os.environ.items() if name not in quiet}
    process = subprocess.Popen(
        [*COMMAND, "demo", "--nodes", "1000", "--arriving", "1"],
        cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, preexec_fn=lambda: _own_terminal(theirs),
    )  # fmt: skip
    os.close(theirs)
    try:
        said = read_until(ours, process, OPEN)
        assert OPEN.search(said), said[-2000:]
        url = OPEN.search(said)[1]
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            assert "<h1>Today</h1>" in answer.read().decode()
        os.write(ours, b"\x03")
        rest = read_until(ours, process, re.compile("(?!)"))
        assert process.wait(PATIENCE_SECONDS) == 0
        assert "Closing Neo4j." in rest
        assert "Traceback" not in rest
        assert "starting Neo4j" not in rest  # the bar of the start has ended with the start
    finally:
        process.kill()
        os.close(ours)


def _own_terminal(terminal):
    """Make it the terminal that Ctrl-C comes from."""
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
