"""`[serve]`: who may see the dashboard, and where."""

from __future__ import annotations

from pydantic import Field, SecretStr

from ringfence.jobs.config.section import Section


class ServeSettings(Section):
    """The dashboard of `ringfence serve`."""

    host: str = Field(
        "127.0.0.1",
        description="Address to listen on. Anything but this machine needs a token.",
    )
    port: int = Field(8470, ge=0, le=65535, description="Port; 0 takes a free one.")
    token: SecretStr | None = Field(
        None,
        description="Environment only. What people type to log in (16 characters or more). Without "
        "one only this machine has access, and no login is asked for.",
    )
    viewer_token: SecretStr | None = Field(
        None,
        description="Environment only. A second token, for people who see every page and may mark "
        "no node of the worklist; `token` is then the operators'.",
    )
    user_header: str = Field(
        "",
        max_length=100,
        description="Header in which a proxy in front sends the user's name, such as "
        "`X-Forwarded-User`; marks of the worklist are recorded under it. The proxy must remove "
        "the header from what visitors send.",
    )
    session_hours: float = Field(12.0, gt=0, description="How long a login lasts.")
    why_seconds: float = Field(
        10.0,
        ge=0,
        description="After so many seconds the page *Why this set* begins no further step, "
        "loading the mirror included, and says what was not looked at; 0 takes the page away.",
    )
    hosts: list[str] = Field(
        default_factory=list,
        description="Names by which the dashboard may be called, besides localhost and `host`; "
        "a request for any other Host is refused.",
    )
    https: bool = Field(
        False, description="A proxy in front speaks HTTPS: cookies are sent over HTTPS alone."
    )
