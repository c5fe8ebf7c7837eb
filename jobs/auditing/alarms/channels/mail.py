"""Alarm events by mail, through the configured SMTP server.

With `smtp_tls` the server's certificate is verified against the machine's authorities; one of an
authority of your own goes into the file that the environment variable SSL_CERT_FILE names.
"""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from typing import Any

from ringfence.jobs.auditing.alarms.channels.base import STEP_SECONDS, Channel, Message, Track
from ringfence.jobs.config.alarms import AlarmSettings
from ringfence.jobs.project.audit_store import secret_text


def _is_configured(settings: AlarmSettings) -> bool:
    return bool(settings.email_to)


def _send(settings: AlarmSettings, message: Message, track: Track) -> None:
    with _connect(settings, track) as server:
        if settings.smtp_tls == "starttls":
            server.starttls(context=ssl.create_default_context())
        if settings.smtp_user:
            server.login(settings.smtp_user, secret_text(settings.smtp_password) or "")
        server.send_message(_mail(settings, message))


def _connect(settings: AlarmSettings, track: Track) -> smtplib.SMTP:
    """Open a connection; smtplib connects in its constructor, so it is tracked from inside."""

    class Plain(smtplib.SMTP):
        def connect(self, *given: Any, **options: Any) -> tuple[int, bytes]:
            track(self)
            return super().connect(*given, **options)

    class Encrypted(smtplib.SMTP_SSL):
        def connect(self, *given: Any, **options: Any) -> tuple[int, bytes]:
            track(self)
            return super().connect(*given, **options)

    host, port = settings.smtp_host, settings.smtp_port
    if settings.smtp_tls == "tls":
        context = ssl.create_default_context()
        return Encrypted(host, port, timeout=STEP_SECONDS, context=context)
    return Plain(host, port, timeout=STEP_SECONDS)


def _mail(settings: AlarmSettings, message: Message) -> EmailMessage:
    event = message.event
    one_line = " ".join(f"{message.project}: {event.rule} is {event.state}".split())
    mail = EmailMessage()
    mail["Subject"] = f"ringfence {one_line}"[:200]
    mail["From"], mail["To"] = settings.email_from, ", ".join(settings.email_to)
    mail.set_content("\n".join(f"{name}: {value}" for name, value in message.body().items()))
    return mail


CHANNEL = Channel("mail", _is_configured, _send)
