"""Telling people: alarm events by webhook and by mail, at least once each."""

from __future__ import annotations

import hashlib
import hmac
import json
import smtplib
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Row, select, update

from ringfence.connector.errors import ConfigError
from ringfence.connector.runs import Writer
from ringfence.connector.tables import alarm_event
from ringfence.connector.times import words
from ringfence.jobs.audit_store import secret_text
from ringfence.jobs.settings import Settings

SECONDS = 10.0
TOLD = ("firing", "no data", "ok")  # pending is nobody's business yet
MOST = 100  # events tried per audit


def deliver(writer: Writer, settings: Settings) -> None:
    """Send what no channel has taken yet; a channel that fails gets it again next time."""
    channels = channels_of(settings)
    project = writer.lease.project
    with writer.store.reading() as connection:
        open_ = connection.execute(
            select(alarm_event)
            .where(alarm_event.c.project == project)
            .order_by(alarm_event.c.n.desc())
            .limit(MOST)
        ).all()
    for event in reversed(open_):
        done = set(event.delivered.split()) if event.delivered else set()
        if event.state not in TOLD or (event.was, event.state) == ("pending", "ok"):
            continue
        sent = {name for name, send in channels.items() if name not in done and send(event)}
        if sent:
            _mark(writer, event, done | sent)


def channels_of(settings: Settings) -> dict[str, Callable[[Row[Any]], bool]]:
    """Return the configured channels: each takes an event and says whether it got through."""
    found: dict[str, Callable[[Row[Any]], bool]] = {}
    if settings.alarms.webhook:
        found["webhook"] = lambda event: _post(settings, event)
    if settings.alarms.email_to:
        found["mail"] = lambda event: _mail(settings, event)
    return found


def body_of(event: Row[Any]) -> dict[str, Any]:
    """Return an event as a receiver gets it."""
    return {
        "project": event.project,
        "number": event.n,
        "at": words(event.at_ns),
        "rule": event.rule,
        "was": event.was,
        "state": event.state,
        "words": event.words,
    }


def signature(secret: str, body: bytes) -> str:
    """Return what the header X-Ringfence-Signature holds.

    >>> signature("secret", b"{}")[:14]
    'sha256=7732590'
    """
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _post(settings: Settings, event: Row[Any]) -> bool:
    url = str(settings.alarms.webhook)
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ConfigError(found=f"[alarms] webhook is {url!r}", needed="http:// or https://")
    body = json.dumps(body_of(event)).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
    if secret := secret_text(settings.alarms.webhook_secret):
        request.add_header("X-Ringfence-Signature", signature(secret, body))
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            return bool(200 <= answer.status < 300)
    except (urllib.error.URLError, OSError):
        return False


def _mail(settings: Settings, event: Row[Any]) -> bool:
    alarms = settings.alarms
    message = EmailMessage()
    one_line = " ".join(f"{event.project}: {event.rule} is {event.state}".split())
    message["Subject"] = f"ringfence {one_line}"[:200]
    message["From"], message["To"] = alarms.email_from, ", ".join(alarms.email_to)
    lines = [f"{name}: {value}" for name, value in body_of(event).items()]
    message.set_content("\n".join(lines))
    kind = smtplib.SMTP_SSL if alarms.smtp_tls == "tls" else smtplib.SMTP
    try:
        with kind(alarms.smtp_host, alarms.smtp_port, timeout=SECONDS) as server:
            if alarms.smtp_tls == "starttls":
                server.starttls()
            if alarms.smtp_user:
                server.login(alarms.smtp_user, secret_text(alarms.smtp_password) or "")
            server.send_message(message)
    except (smtplib.SMTPException, OSError):
        return False
    return True


def _mark(writer: Writer, event: Row[Any], channels: set[str]) -> None:
    with writer.store.transaction() as connection:
        writer.begin(connection)
        connection.execute(
            update(alarm_event)
            .where(alarm_event.c.project == event.project, alarm_event.c.n == event.n)
            .values(delivered=" ".join(sorted(channels)))
        )
