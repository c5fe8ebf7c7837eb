"""`[alarms]` and `[serve]`: who is told, and who may look."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from ringfence.jobs.section import Section

Rule = Literal["coverage", "unseen", "drift", "bias", "labels", "runs"]


class AlarmSettings(Section):
    """When an audit raises an alarm (exit code 2), and who is told."""

    rules: list[Rule] = Field(
        ["coverage", "unseen", "drift"],
        description="`coverage` the anytime bound is crossed; `unseen` a class that the model "
        "never saw; `drift` the watch over exchangeability; `bias` known classes are a biased "
        "sample; `labels` no class became known for `no_data_hours`; `runs` no run for "
        "`no_run_hours`.",
    )
    pending_minutes: float = Field(
        0.0, ge=0, description="A rule must hold this long before its alarm fires."
    )
    no_data_hours: float = Field(
        168.0,
        gt=0,
        description="Without a newly known class for so long, `coverage` says *no data*.",
    )
    no_run_hours: float = Field(26.0, gt=0, description="For the rule `runs`.")
    webhook: str | None = Field(
        None, description="URL that gets every change of an alarm as a JSON POST."
    )
    webhook_secret: SecretStr | None = Field(
        None,
        description="Environment only. Key of the HMAC-SHA256 in the header X-Ringfence-Signature.",
    )
    email_to: list[str] = Field(default_factory=list, description="Who gets mail.")
    email_from: str = Field("ringfence@localhost", description="Sender of the mail.")
    smtp_host: str = Field("localhost", description="Mail server.")
    smtp_port: int = Field(25, ge=1, le=65535, description="Its port.")
    smtp_tls: Literal["none", "starttls", "tls"] = Field("none", description="How it encrypts.")
    smtp_user: str | None = Field(None, description="Who logs in there, if anyone.")
    smtp_password: SecretStr | None = Field(
        None, description="Environment only. Password of `smtp_user`."
    )


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
        "one only this machine may look, and no login is asked for.",
    )
    session_hours: float = Field(12.0, gt=0, description="How long a login lasts.")
    hosts: list[str] = Field(
        default_factory=list,
        description="Names by which the dashboard may be called, besides localhost and `host`; "
        "a request for any other Host is refused.",
    )
    https: bool = Field(
        False, description="A proxy in front speaks HTTPS: cookies are sent over HTTPS alone."
    )
