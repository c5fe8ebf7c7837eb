"""Runs on a machine whose clock is a day ahead or behind, for the process and for SQLite alike.

The clock is moved by libfaketime where it is installed, else by a library of the same kind that is
compiled here. Faults at places of such runs: `clock_jump` in tests/faults.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ringfence.jobs.integrity.verify import run_verification
from tests.end_to_end.test_long_life import in_graph, sets_per_node
from tests.forms import PUBLISHED_SEED_KEY
from tests.stores import sqlite

DAY_SECONDS = 86_400
PLACES = ("/usr/lib", "/usr/local/lib", "/opt/homebrew/lib")
MOVED_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t seconds(void) { return atol(getenv("CLOCK_SECONDS")); }

int clock_gettime(clockid_t id, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += seconds();
    return done;
}

int gettimeofday(struct timeval *now, void *zone) {
    int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
    int done = real(now, zone);
    now->tv_sec += seconds();
    return done;
}

time_t time(time_t *now) {
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    if (now) *now = read.tv_sec;
    return read.tv_sec;
}
"""
CLOCKS = (
    "import sqlite3, time; print(time.time()); print(sqlite3.connect(':memory:').execute("
    "\"SELECT (julianday('now') - 2440587.5) * 86400\").fetchone()[0])"
)


@pytest.fixture(scope="module")
def moved_clock(tmp_path_factory):
    """The environment of a process whose clock is so many seconds off."""
    installed = [file for place in PLACES for file in Path(place).glob("**/libfaketime.so.1")]
    if installed:
        return lambda by: {"LD_PRELOAD": str(installed[0]), "FAKETIME": f"{by:+d}s"}
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs libfaketime, or Linux and a C compiler")
    folder = tmp_path_factory.mktemp("clock")
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(MOVED_CLOCK)
    build = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(build, check=True)
    return lambda by: {"LD_PRELOAD": str(library), "CLOCK_SECONDS": str(by)}


def test_the_clock_of_python_and_of_sqlite_is_moved(moved_clock):
    """The control: else the test below would run by the right clock."""
    moved = os.environ | moved_clock(-DAY_SECONDS)
    ended = subprocess.run(
        [sys.executable, "-c", CLOCKS], env=moved, capture_output=True, text=True, check=True
    )
    for read in ended.stdout.split():
        assert abs(time.time() - DAY_SECONDS - float(read)) < DAY_SECONDS / 4


@sqlite
@pytest.mark.long
def test_no_node_is_lost_or_doubled_while_the_clock_jumps(trained, tmp_path, moved_clock):
    workspace = trained.workspace

    def call(verb, seconds):
        neo4j = workspace.settings.neo4j
        environment = os.environ | {
            "RINGFENCE_NEO4J_USER": neo4j.user,
            "RINGFENCE_NEO4J_PASSWORD": neo4j.password.get_secret_value(),
            "RINGFENCE_AUDIT_URL": workspace.settings.audit.url,
            "RINGFENCE_SEED_KEY": PUBLISHED_SEED_KEY,
        }
        command = [sys.executable, "-m", "ringfence", verb]
        ended = subprocess.run(
            [*command, "--config", str(tmp_path / "ringfence.toml")],
            env=environment | (moved_clock(seconds) if seconds else {}),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr

    arrived = len(trained.first.nodes[~trained.labelled[trained.first.nodes]])
    for seconds, batch in ((DAY_SECONDS, None), (-DAY_SECONDS, 0), (0, 1)):
        if batch is not None:
            trained.arrive(trained.later[batch])
            arrived += len(trained.later[batch].nodes)
        call("score", seconds)
        trained.reveal(trained.first.nodes)
        call("audit", seconds)
        assert sets_per_node(workspace) == (arrived, 0)
        assert in_graph(workspace) == (arrived, arrived)
        assert run_verification(workspace).problems == ()
