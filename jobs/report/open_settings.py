"""The configuration as an audit pack has it: without secrets, and without what may be one."""

from __future__ import annotations

from urllib.parse import urlsplit

from ringfence.connector.json_types import JsonObject
from ringfence.jobs.config.settings import SECRET_FIELDS, Settings


def open_settings(settings: Settings) -> JsonObject:
    """Return the configuration without secrets; addresses lose what may be one.

    A webhook's path often is a secret, and a URL may hold a password although it should not.
    """
    body = settings.model_dump(mode="json", exclude=SECRET_FIELDS)
    body["alarms"]["webhook"] = _host_alone(body["alarms"]["webhook"])
    body["audit"]["url"] = _without_password(body["audit"]["url"])
    body["neo4j"]["uri"] = _without_password(body["neo4j"]["uri"])
    return body


def _host_alone(url: str | None) -> str | None:
    """Keep scheme and host of an address.

    >>> _host_alone("https://user:x@hooks.example.org/services/T0/SECRET?k=1")
    'https://hooks.example.org/…'
    """
    if not url:
        return url
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}/…"


def _without_password(url: str) -> str:
    """Take the password out of an address.

    >>> _without_password("postgresql+psycopg://me:secret@db/audit")
    'postgresql+psycopg://me@db/audit'
    """
    parts = urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username or ''}@{host}").geturl()
