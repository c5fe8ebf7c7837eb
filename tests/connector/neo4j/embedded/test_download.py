"""The server's jars: fetched in parallel from a real HTTP server, checked, never half-named."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ringfence.connector.errors import ServerError
from ringfence.connector.neo4j.embedded import ServerProgress, jars, jars_lock
from ringfence.connector.neo4j.embedded import download as downloads
from ringfence.connector.neo4j.embedded.download import download
from ringfence.connector.neo4j.embedded.jars import Jar, class_path, locked_jars

CONTENT = {f"org/part/{n}/part-{n}.jar": bytes([n]) * (40_000 * n + 1) for n in range(1, 12)}


class Repository:
    """A Maven repository on a local port that can be told to misbehave."""

    def __init__(self):
        self.content = dict(CONTENT)
        self.failures = {}  # path -> status codes to answer with first
        self.requests = []
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.removeprefix("/maven2/")
                repository.requests.append(path)
                failing = repository.failures.get(path, [])
                if failing or path not in repository.content:
                    self.send_error(failing.pop(0) if failing else 404)
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.write(repository.content[path])

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/maven2"


@pytest.fixture
def repository(monkeypatch):
    monkeypatch.setattr(downloads, "FIRST_PAUSE_SECONDS", 0.01)
    repository = Repository()
    thread = threading.Thread(target=repository.server.serve_forever, args=[0.01])
    thread.start()
    yield repository
    repository.server.shutdown()
    thread.join()
    repository.server.server_close()


def jar(path):
    data = CONTENT[path]
    return Jar(path, len(data), hashlib.sha256(data).hexdigest())


ALL = [jar(path) for path in CONTENT]


def files_in(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_every_jar_arrives_whole_and_progress_ends_at_the_total(repository, tmp_path):
    seen = []
    download(ALL, tmp_path, repository.address, seen.append)
    assert files_in(tmp_path) == CONTENT
    total = sum(map(len, CONTENT.values()))
    assert seen[-1] == ServerProgress("download", len(ALL), len(ALL), total, total)
    assert [now.bytes_done for now in seen] == sorted(now.bytes_done for now in seen)


def test_a_passing_failure_is_tried_again(repository, tmp_path):
    repository.failures = {ALL[0].path: [503, 429], ALL[1].path: [500]}
    download(ALL, tmp_path, repository.address, lambda _: None)
    assert files_in(tmp_path) == CONTENT
    assert repository.requests.count(ALL[0].path) == 3


def test_a_jar_with_other_bytes_never_gets_its_name(repository, tmp_path):
    path = ALL[0].path
    repository.content[path] = b"x" * ALL[0].size  # the same length: only the hash can tell
    with pytest.raises(ServerError, match="SHA-256"):
        download(ALL[:1], tmp_path, repository.address, lambda _: None)
    assert files_in(tmp_path) == {}
    assert repository.requests.count(path) == downloads.ATTEMPTS


def test_a_missing_jar_is_asked_for_once_and_named(repository, tmp_path):
    del repository.content[ALL[3].path]
    with pytest.raises(ServerError) as caught:
        download(ALL, tmp_path, repository.address, lambda _: None)
    assert ALL[3].path in caught.value.found
    assert "404" in caught.value.found
    assert repository.requests.count(ALL[3].path) == 1
    assert not [name for name in files_in(tmp_path) if name.endswith(".part")]


def test_without_a_network_the_error_says_what_to_type(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "FIRST_PAUSE_SECONDS", 0.01)
    with pytest.raises(ServerError) as caught:
        download(ALL, tmp_path, "http://127.0.0.1:1/maven2", lambda _: None)
    assert "could not be downloaded" in caught.value.found
    assert "RINGFENCE_MAVEN_URL" in caught.value.next_step
    assert "same command again" in caught.value.next_step


@pytest.fixture
def small_lock(repository, tmp_path, monkeypatch):
    """A lock of eleven jars, a mirror to get them from, and an empty place for them."""
    jars_lock = tmp_path / "jars.lock"
    jars_lock.write_text("".join(f"{jar.sha256} {jar.size} {jar.path}\n" for jar in ALL))
    monkeypatch.setattr(jars, "LOCK_FILE", jars_lock)
    monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
    monkeypatch.setenv("RINGFENCE_MAVEN_URL", repository.address + "/")
    return tmp_path / "m2"


def test_the_class_path_follows_the_lock_and_later_starts_ask_nobody(repository, small_lock):
    expected = [small_lock / jar.path for jar in ALL]
    assert class_path() == expected
    assert len(repository.requests) == len(ALL)
    assert class_path() == expected
    assert len(repository.requests) == len(ALL)


def test_a_jar_with_one_other_byte_is_fetched_again_before_it_is_run(repository, small_lock):
    class_path()
    repository.requests.clear()
    path = small_lock / ALL[5].path
    raw = bytearray(path.read_bytes())
    raw[0] ^= 1  # the same size
    path.write_bytes(bytes(raw))
    class_path()
    assert repository.requests == [ALL[5].path]
    assert files_in(small_lock) == CONTENT


def test_a_jar_cut_short_is_fetched_again_and_only_that_one(repository, small_lock):
    class_path()
    repository.requests.clear()
    (small_lock / ALL[5].path).write_bytes(b"half")
    class_path()
    assert repository.requests == [ALL[5].path]
    assert files_in(small_lock) == CONTENT


def test_the_shipped_lock_names_each_jar_once():
    locked = locked_jars()
    assert len({jar.path for jar in locked}) == len(locked)
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in locked)
    names = {jar.path.rpartition("/")[2] for jar in locked}
    assert {f"neo4j-{jars.VERSION}.jar", f"neo4j-bolt-{jars.VERSION}.jar"} <= names


def test_the_lock_is_written_in_its_own_order(tmp_path):
    lines = jars.LOCK_FILE.read_text().splitlines()
    assert lines == sorted(lines, key=jars_lock._order)
    (tmp_path / "a.jar").write_bytes(b"jar")
    digest = hashlib.sha256(b"jar").hexdigest()
    assert jars_lock._line(tmp_path / "a.jar", tmp_path) == f"{digest} 3 a.jar\n"
