"""Alarm events as a JSON POST, signed with HMAC-SHA256 where a secret is set.

A redirect is not followed: the POST would become a GET without the event, with the signature, to an
address that was not configured. Only an answer 2xx counts as delivered.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from ringfence.connector.errors import ConfigError
from ringfence.jobs.auditing.alarms.channels.base import STEP_SECONDS, Channel, Message, Track
from ringfence.jobs.config.alarms import AlarmSettings
from ringfence.jobs.project.audit_store import secret_text

SIGNATURE_HEADER = "X-Ringfence-Signature"


def signature(secret: str, body: bytes) -> str:
    """Return what the header X-Ringfence-Signature holds.

    >>> signature("secret", b"{}")[:14]
    'sha256=7732590'
    """
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _is_configured(settings: AlarmSettings) -> bool:
    return bool(settings.webhook)


def _send(settings: AlarmSettings, message: Message, track: Track) -> None:
    request = _request(settings, message)
    opener = urllib.request.build_opener(_NoRedirect, _Http(track), _Https(track))
    try:
        with opener.open(request, timeout=STEP_SECONDS):
            return
    except urllib.error.HTTPError as answer:  # every status but 2xx
        answer.close()
        raise http.client.HTTPException(f"the answer was HTTP status {answer.code}") from None


def _request(settings: AlarmSettings, message: Message) -> urllib.request.Request:
    url = str(settings.webhook)
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ConfigError(found=f"[alarms] webhook is {url!r}", needed="http:// or https://")
    body = json.dumps(message.body()).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
    if secret := secret_text(settings.webhook_secret):
        request.add_header(SIGNATURE_HEADER, signature(secret, body))
    return request


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves 301 to 308 to the handler of errors."""

    def redirect_request(self, *_given: Any) -> None:
        """Give no second request."""


class _Http(urllib.request.HTTPHandler):
    """Opens http:// with connections that are tracked."""

    def __init__(self, track: Track) -> None:
        super().__init__()
        self._track = track

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Send the request."""
        return self.do_open(self._connection, req)

    def _connection(self, host: str, **options: Any) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(host, **options)
        self._track(connection)
        return connection


class _Https(urllib.request.HTTPSHandler):
    """Opens https:// with connections that are tracked; certificates are verified."""

    def __init__(self, track: Track) -> None:
        super().__init__()
        self._track = track

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Send the request."""
        return self.do_open(self._connection, req)

    def _connection(self, host: str, **options: Any) -> http.client.HTTPSConnection:
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, context=context, **options)
        self._track(connection)
        return connection


CHANNEL = Channel("webhook", _is_configured, _send)
