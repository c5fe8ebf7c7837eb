"""Delivery against real receivers, good and bad: each channel stands alone, within its time."""

import http.server
import logging
import re
import shutil
import socketserver
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest
from sqlalchemy import update

from ringfence.connector.store import tables
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.writer import Writer
from ringfence.jobs.auditing.alarms import delivery
from ringfence.jobs.auditing.alarms.channels import CHANNELS, mail, webhook
from ringfence.jobs.auditing.alarms.state import raise_alarms
from ringfence.jobs.config.load import load_values
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.patience import PATIENCE_SECONDS
from tests.stores import two_at_once

pytestmark = pytest.mark.slow

SHORT_SECONDS = 1.0  # for receivers that never come to an end; all others have PATIENCE_SECONDS
NEVER = "no end within"
EIGHT_DAYS_NS = 8 * 86_400 * 10**9
EVENTS = 3  # after eight silent days: coverage has no data, labels and runs fire


@pytest.fixture(autouse=True)
def little_time(monkeypatch):
    """Gives the channels that a test names little time, after which its failures are over."""
    hanging, channel_names = set(), {channel.send: channel.name for channel in CHANNELS}
    within = delivery.send_within

    def limited(_seconds, send):
        hangs = channel_names[send.func] in hanging
        within(SHORT_SECONDS if hangs else PATIENCE_SECONDS, send)

    monkeypatch.setattr(delivery, "send_within", limited)
    monkeypatch.setattr(delivery, "FAILED_SECONDS_PER_AUDIT", 1.5 * SHORT_SECONDS)
    for module in (mail, webhook):
        monkeypatch.setattr(module, "STEP_SECONDS", PATIENCE_SECONDS)
    return hanging.add


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost that signed itself, and its key, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl: apt-get install openssl")
    path = tmp_path_factory.mktemp("tls") / "own.pem"
    asked = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
        f"-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout {path} -out {path}.crt"
    )
    subprocess.run(asked.split(), check=True, capture_output=True)
    path.write_text(path.read_text() + (path.parent / "own.pem.crt").read_text())
    return path


def encrypted(connection, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context.wrap_socket(connection, server_side=True)


class Threaded(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


@contextmanager
def serving(handle):
    """A TCP server on loopback that gives each connection to `handle`."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            try:
                handle(self.request)
            except OSError:  # the client went away, as it should
                return

    with Threaded(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def mailbox(certificate=None, tls="none"):
    """A mail server that knows just enough SMTP, plain, with STARTTLS or inside TLS."""
    mails = []

    def take(connection):
        if tls == "tls":
            with encrypted(connection, certificate) as secured:
                talk(secured)
        else:
            talk(connection)

    def talk(connection, greeting=b"220 test\r\n"):
        stream = connection.makefile("rwb", buffering=0)
        stream.write(greeting)
        while line := stream.readline():
            verb = line.split()[0].upper()
            if verb == b"EHLO":
                stream.write(b"250-test\r\n250 STARTTLS\r\n")
            elif verb == b"STARTTLS":
                stream.write(b"220 go on\r\n")
                with encrypted(connection, certificate) as secured:
                    talk(secured, greeting=b"")
                return
            elif verb == b"DATA":
                stream.write(b"354 go on\r\n")
                mails.append(b"".join(iter(stream.readline, b".\r\n")).decode())
                stream.write(b"250 fine\r\n")
            else:
                stream.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 fine\r\n")

    with serving(take) as port:
        yield port, mails


@contextmanager
def project(folder, **alarms):
    """A made-up store whose alarms have three events to tell; gives the audit's last part."""
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "alarms": {"rules": ["coverage", "labels", "runs"], "smtp_host": "127.0.0.1"} | alarms,
    }
    secret = {"RINGFENCE_ALARMS_WEBHOOK_SECRET": "shared"}
    settings = load_values(values, folder / "ringfence.toml", secret)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=4, per_run=100))
    held = acquire(store, "p", "test", 60)
    writer = Writer(store, held, chain_key(None, settings.engine.folder))
    silent = settings.model_copy(
        update={
            "alarms": settings.alarms.model_copy(update={"webhook": None, "email_to": []}),
        }
    )
    raise_alarms(writer, silent)
    with store.transaction() as connection:
        for column in (tables.label.c.noticed_ns, tables.run.c.decided_ns):
            values = {column.name: column - EIGHT_DAYS_NS}
            connection.execute(update(column.table).values(values))

    def audit():
        states = raise_alarms(writer, settings)
        return {state.rule: state.state for state in states}

    def delivered():
        return [event.delivered for event in ProjectQueries(store, "p").alarm_events()]

    yield audit, delivered
    release(store, held)
    store.close()


def take_request(connection):
    """Read a POST to its end: closing before that would reset the connection."""
    data = b""
    while not data.endswith(b"}"):
        data += connection.recv(65_536)


def answer(text):
    """A receiver that reads the request and sends these bytes."""

    def handle(connection):
        take_request(connection)
        connection.sendall(text)

    return handle


def hang(connection):
    """A receiver that never answers, until it is cut off."""
    while connection.recv(65_536):
        pass


def endless(begin, part, pause=0.0):
    """A receiver that never comes to an end."""

    def handle(connection):
        take_request(connection)
        connection.sendall(begin)
        while True:
            connection.sendall(part)
            time.sleep(pause)

    return handle


BAD_RECEIVERS = {
    "garbage": (answer(b"\x00\xff\x1b[31m not http\r\n\r\n"), "BadStatusLine"),
    "nothing": (take_request, "RemoteDisconnected|ConnectionReset|Connection reset"),
    "hang": (hang, NEVER),
    "drip in the status": (endless(b"HTTP/1.1 ", b"2", 0.1), NEVER),
    "drip in a header": (endless(b"HTTP/1.1 200 OK\r\nX: ", b"y", 0.1), NEVER),
    "endless headers": (endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), "got more than 100 headers"),
    "an endless header": (endless(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 1000), "LineTooLong"),
    "endless interim answers": (
        endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01), NEVER),
    "500": (answer(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), "HTTP status 500"),
    "304": (answer(b"HTTP/1.1 304 No\r\n\r\n"), "HTTP status 304"),
    "199": (answer(b"HTTP/1.1 199 No\r\n\r\n"), "HTTP status 199"),
}  # fmt: skip


@pytest.mark.parametrize("kind", two_at_once(BAD_RECEIVERS))
def test_a_bad_webhook_ends_no_audit_and_keeps_no_mail_from_going_out(
    tmp_path, caplog, little_time, kind
):
    handle, reason = BAD_RECEIVERS[kind]
    tries = []
    if reason == NEVER:
        little_time("webhook")

    def noted(connection):
        tries.append(connection)
        handle(connection)

    with serving(noted) as web, mailbox() as (port, mails):
        channels = {"webhook": f"http://127.0.0.1:{web}/", "email_to": ["a@b.c"], "smtp_port": port}
        with project(tmp_path, **channels) as (audit, delivered):
            assert audit() == {"coverage": "no data", "labels": "firing", "runs": "firing"}
            assert reason != NEVER or len(tries) < EVENTS  # its time for failures was over
            assert len(mails) == EVENTS
            assert delivered() == [("mail",)] * EVENTS
            (line,) = [record for record in caplog.records if record.name == "ringfence.alarms"]
            assert line.levelno == logging.WARNING
            assert "alarm channel webhook failed" in line.getMessage()
            assert "3 of 3 events wait for the next audit" in line.getMessage()
            assert "\x1b" not in line.getMessage()
            assert re.search(reason, line.getMessage()), line.getMessage()
            audit()  # tried again, and mail is not sent twice
            assert len(mails) == EVENTS
            assert len(caplog.records) == 2


def test_a_thread_that_was_cut_ends(tmp_path, little_time):
    little_time("webhook")
    with (
        serving(endless(b"HTTP/1.1 ", b"2", 0.1)) as web,
        project(tmp_path, webhook=f"http://127.0.0.1:{web}/") as (audit, _),
    ):
        audit()
        for thread in threading.enumerate():
            if thread.name == "ringfence-alarm":
                thread.join(PATIENCE_SECONDS)
                assert not thread.is_alive()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_nothing_counts_as_delivered(
    tmp_path, caplog, monkeypatch, status
):
    monkeypatch.setattr(delivery, "FAILED_SECONDS_PER_AUDIT", PATIENCE_SECONDS)
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append((self.command, self.path))
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self):
            asked.append((self.command, self.path))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_given):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        url = f"http://127.0.0.1:{server.server_port}/hook"
        with project(tmp_path, webhook=url) as (audit, delivered):
            audit()
            assert delivered() == [()] * EVENTS
        server.shutdown()
    assert asked == [("POST", "/hook")] * EVENTS
    assert f"HTTP status {status}" in caplog.text


def test_a_webhook_takes_events_while_mail_hangs(tmp_path, little_time):
    little_time("mail")
    good = answer(b"HTTP/1.1 204 Fine\r\n\r\n")
    with serving(hang) as mail, serving(good) as web:
        channels = {"webhook": f"http://127.0.0.1:{web}/", "email_to": ["a@b.c"], "smtp_port": mail}
        with project(tmp_path, **channels) as (audit, delivered):
            audit()
            assert delivered() == [("webhook",)] * EVENTS


def test_an_address_that_is_none_ends_no_audit(tmp_path, caplog):
    with project(tmp_path, webhook="file:///etc/passwd") as (audit, delivered):
        audit()
        assert delivered() == [()] * EVENTS
    assert "[alarms] webhook is 'file:///etc/passwd'" in caplog.text


@pytest.mark.parametrize("trusted", [False, True])
def test_a_webhook_with_a_certificate_of_its_own_is_refused(
    tmp_path, caplog, monkeypatch, certificate, trusted
):
    def handle(connection):
        with encrypted(connection, certificate) as secured:
            answer(b"HTTP/1.1 204 Fine\r\n\r\n")(secured)

    if trusted:  # the control: it is the certificate that makes the difference
        monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    with (
        serving(handle) as port,
        project(tmp_path, webhook=f"https://127.0.0.1:{port}/") as (audit, delivered),
    ):
        audit()
        assert delivered() == [("webhook",) if trusted else ()] * EVENTS
    assert ("CERTIFICATE_VERIFY_FAILED" in caplog.text) is not trusted


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_a_mail_server_with_a_certificate_of_its_own_is_refused(
    tmp_path, caplog, monkeypatch, certificate, tls, trusted
):
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    with mailbox(certificate, tls) as (port, mails):
        channels = {"email_to": ["a@b.c"], "smtp_port": port, "smtp_tls": tls}
        with project(tmp_path, smtp_host="localhost", **channels) as (audit, delivered):
            audit()
            assert delivered() == [("mail",) if trusted else ()] * EVENTS
    assert len(mails) == (EVENTS if trusted else 0)
    assert ("CERTIFICATE_VERIFY_FAILED" in caplog.text) is not trusted
