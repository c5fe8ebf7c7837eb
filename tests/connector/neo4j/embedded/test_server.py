"""The embedded Neo4j as a process: started twice, searched for secrets, killed, recovered, stopped.

One server lives through this module, because a start costs seconds: the tests run in their
order, from the first start of a data folder to the last.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from neo4j import GraphDatabase
from neo4j.exceptions import AuthError, Neo4jError
from typer.testing import CliRunner

from ringfence.connector.errors import ServerError
from ringfence.connector.neo4j import embedded
from ringfence.jobs.cli.commands.samples.neo4j import app
from tests.patience import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.neo4j

START = """
import sys, time
from ringfence.connector.neo4j import embedded
server = embedded.start(sys.argv[1], attached=sys.argv[2] == "attached")
print(server.pid, flush=True)
if sys.argv[2] == "attached":
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("embedded") / "a graph of Zoë's"
    yield path
    embedded.stop(path)


@pytest.fixture(scope="module")
def twin_pids(folder):
    """What two processes that start the same folder at the same moment are given."""
    twins = [launch(folder, "detached") for _ in range(2)]
    return [int(twin.communicate(timeout=PATIENCE_SECONDS)[0]) for twin in twins]


@pytest.fixture(scope="module")
def server(folder, twin_pids):
    return embedded.find_running(folder)


def launch(folder, mode):
    return subprocess.Popen(
        [sys.executable, "-c", START, str(folder), mode], stdout=subprocess.PIPE, text=True
    )


def query(server, text, password=None):
    login = (server.user, password or server.password)
    with GraphDatabase.driver(server.uri, auth=login) as driver:
        return [record.data() for record in driver.execute_query(text).records]


def is_alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def jvms_on(folder):
    def runs_on_folder(process):
        arguments = process.info["cmdline"] or []
        return str(folder) in arguments and any(part.endswith("jvm.py") for part in arguments)

    return [p.pid for p in psutil.process_iter(["cmdline"]) if runs_on_folder(p)]


def test_two_starts_at_once_give_one_server(folder, twin_pids):
    assert twin_pids[0] == twin_pids[1]
    assert jvms_on(folder) == [twin_pids[0]]


def test_a_detached_server_outlives_those_who_started_it(server, twin_pids):
    assert server.pid == twin_pids[0]
    assert is_alive(server.pid)
    assert os.getpgid(server.pid) == server.pid  # a group of its own: no Ctrl-C from a terminal


def test_it_is_the_real_neo4j(server):
    components = query(server, "CALL dbms.components() YIELD name, versions, edition")
    kernel = {"name": "Neo4j Kernel", "versions": [embedded.VERSION], "edition": "community"}
    assert kernel in components


@pytest.mark.parametrize(
    "address", ["file:///secret.csv", "http://127.0.0.1:{port}/", "http://localhost:{port}/"]
)
def test_a_query_reads_neither_local_files_nor_addresses(server, folder, address):
    imports = folder / "import"  # where Neo4j looks for file:///
    imports.mkdir(exist_ok=True)
    (imports / "secret.csv").write_text("secret\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(1.0)
        place = address.format(port=listener.getsockname()[1])
        login = (server.user, server.password)
        with (
            GraphDatabase.driver(server.uri, auth=login) as driver,
            pytest.raises(Neo4jError, match=r"(?i)disabled|blocked|not allowed|cannot load"),
        ):
            driver.execute_query(f"LOAD CSV FROM '{place}' AS row RETURN row", routing_="r")
        with pytest.raises(TimeoutError):
            listener.accept()  # nobody connected


def test_a_wrong_password_is_refused_and_the_right_one_is_not(server):
    with pytest.raises(AuthError):
        query(server, "RETURN 1 AS one", password="not the password")
    assert query(server, "RETURN 1 AS one") == [{"one": 1}]


def test_it_listens_on_loopback_only_and_on_bolt_only(server):
    sockets = psutil.Process(server.pid).net_connections(kind="inet")
    listening = [s.laddr for s in sockets if s.status == psutil.CONN_LISTEN]
    assert [(a.ip.removeprefix("::ffff:"), a.port) for a in listening] == [
        ("127.0.0.1", server.port)
    ]
    assert [s for s in sockets if s.type == socket.SOCK_DGRAM] == []  # no discovery broadcasts


def test_other_addresses_of_this_machine_do_not_answer(server):
    socket.create_connection(
        ("127.0.0.1", server.port), timeout=PATIENCE_SECONDS
    ).close()  # loopback does
    addresses = [a.address for nic in psutil.net_if_addrs().values() for a in nic]
    for address in addresses:
        if "." in address and not address.startswith("127."):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((address, server.port), timeout=PATIENCE_SECONDS)


def test_the_password_is_in_one_private_file_and_nowhere_else(folder, server):
    secret = server.password.encode()
    # Neo4j keeps a salted hash in its own store, so the whole folder can be searched
    holders = [p for p in folder.rglob("*") if p.is_file() and secret in p.read_bytes()]
    assert holders == [server.credentials]
    process = psutil.Process(server.pid)
    assert server.password not in " ".join([*process.cmdline(), *process.environ().values()])
    assert server.password not in repr(server)


def test_the_folder_and_its_files_are_closed_to_others(folder, server):
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("server.json", "credentials.env", "neo4j.conf", "logs/debug.log", "data"):
        assert (folder / name).stat().st_mode & 0o077 == 0


def test_the_command_line_finds_the_running_server(folder, server):
    started, status = run_command("start", folder), run_command("status", folder)
    assert started["pid"] == status["pid"] == server.pid
    assert status["state"] == "running"
    assert status["uri"] == server.uri
    assert "password" not in status
    shown = run_command("status", folder, "--show-password")
    assert shown["password"] == server.password


def test_the_command_line_tells_people_where_the_login_is(folder, server):
    told = CliRunner().invoke(app, ["status", "--data", str(folder)]).output
    assert str(server.credentials) in told
    assert server.password not in told
    lines = server.credentials.read_text().splitlines()
    assert f"RINGFENCE_NEO4J_PASSWORD={server.password}" in lines
    assert f"RINGFENCE_NEO4J_URI={server.uri}" in lines


def run_command(verb, folder, *more):
    result = CliRunner().invoke(app, [verb, "--data", str(folder), "--json", *more])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.fixture(scope="module")
def killed(folder, server):
    """The server after a write and a kill -9."""
    query(server, "CREATE (:Survivor {name: 'written before the kill'})")
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: embedded.find_running(folder) is None)
    return server


def test_a_killed_server_is_stale(folder, killed):
    assert embedded.status(folder).state == "stale"
    assert embedded.find_running(folder) is None


def test_a_recycled_process_id_is_not_mistaken_for_the_server(folder, killed):
    innocent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    state = json.loads((folder / "server.json").read_text())
    (folder / "server.json").write_text(json.dumps({**state, "pid": innocent.pid}))
    os.kill(innocent.pid, 0)  # whoever asks only whether the pid lives is fooled
    assert embedded.status(folder).state == "stale"
    assert embedded.stop(folder) is False
    assert innocent.poll() is None
    innocent.kill()
    innocent.wait()


@pytest.fixture(scope="module")
def orphaned(folder, killed):
    """The next server, attached to a process that is then killed; what it held before."""
    parent = launch(folder, "attached")
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    revived = embedded.find_running(folder)
    assert revived is not None
    assert revived.pid == pid
    survivors = query(revived, "MATCH (n:Survivor) RETURN n.name AS name")
    parent.kill()
    parent.communicate()
    return revived, survivors


def test_the_next_start_recovers_data_password_and_port(killed, orphaned):
    revived, survivors = orphaned
    assert survivors == [{"name": "written before the kill"}]
    assert revived.password == killed.password
    assert revived.uri == killed.uri
    assert revived.pid != killed.pid


def test_an_attached_server_ends_with_its_killed_parent(folder, orphaned):
    revived, _ = orphaned
    wait_until(lambda: not is_alive(revived.pid))
    assert jvms_on(folder) == []
    assert embedded.status(folder).state == "stopped"  # it closed, it was not cut off
    assert revived.log.read_text().splitlines()[-1].endswith("closed")


@pytest.mark.long
def test_lost_credentials_are_made_anew(folder, orphaned):
    revived, _ = orphaned
    wait_until(lambda: not is_alive(revived.pid))
    revived.credentials.unlink()
    with embedded.running(folder) as server:
        assert server.password != revived.password
        assert query(server, "MATCH (n:Survivor) RETURN count(n) AS n") == [{"n": 1}]
        with pytest.raises(AuthError):
            query(server, "RETURN 1", password=revived.password)

        with embedded.running(folder) as inner:
            assert inner == server
        assert embedded.find_running(folder) == server  # the inner block did not start it

        os.kill(server.pid, signal.SIGSTOP)  # it can't answer SIGTERM now
        assert embedded.stop(folder, timeout=1.0) is True
        assert not is_alive(server.pid)
        assert embedded.status(folder).state == "stopped"
    assert embedded.stop(folder) is False


def test_a_server_that_cannot_start_shows_its_last_words(tmp_path):
    with pytest.raises(ServerError) as caught:
        embedded.start(tmp_path / "tiny", options=embedded.ServerOptions(heap="1m"))
    assert "Too small maximum heap" in caught.value.found
    assert "server.log" in caught.value.next_step
    assert jvms_on(tmp_path / "tiny") == []
    assert embedded.status(tmp_path / "tiny").state == "stopped"


@pytest.mark.long
def test_a_setting_that_neo4j_refuses_is_shown_with_its_cause(tmp_path):
    with pytest.raises(ServerError, match=r"because: .*pagecache"):
        embedded.start(tmp_path, options=embedded.ServerOptions(page_cache="plenty"))


def test_a_taken_port_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServerError, match=f"port {port} of 127.0.0.1 is taken"):
            embedded.start(tmp_path, options=embedded.ServerOptions(port=port))


def test_nothing_runs_in_a_folder_that_is_not_there(tmp_path):
    nowhere = tmp_path / "nowhere"
    assert embedded.status(nowhere).state == "stopped"
    assert embedded.find_running(nowhere) is None
    assert embedded.stop(nowhere) is False
    assert not Path(nowhere).exists()
    assert "stopped" in CliRunner().invoke(app, ["status", "--data", str(nowhere)]).output
    assert "no server" in CliRunner().invoke(app, ["stop", "--data", str(nowhere)]).output
    assert run_command("stop", nowhere) == {"stopped": False, "data_dir": str(nowhere)}
