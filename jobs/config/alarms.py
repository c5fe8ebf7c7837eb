"""`[alarms]`: when an alarm fires, and who is notified."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from ringfence.jobs.config.section import Section

Rule = Literal[
    "coverage", "decline", "classes", "groups", "sample", "lists", "shortfall", "unseen", "drift",
    "bias", "shift", "labels", "runs", "record",
]  # fmt: skip


class AlarmSettings(Section):
    """When an audit raises an alarm (exit code 4), and who is notified."""

    rules: list[Rule] = Field(
        [
            "coverage",
            "decline",
            "classes",
            "groups",
            "unseen",
            "drift",
            "record",
            "shortfall",
            "sample",
            "lists",
        ],
        description="`coverage` the anytime bound is crossed; `classes`, `groups` the same for one "
        "that has a promise of its own (`[conformal] promise`); `shortfall` one without such a "
        "promise is missed twice as often as all nodes may be; `decline` coverage of settled runs "
        "fell below the promise and below what earlier runs let expect; `unseen` a class that the "
        "model never saw; `drift` the monitor of exchangeability fires; `bias` known classes are a "
        "biased sample; `shift` the last run's nodes differ from the calibration nodes before "
        "any class is known; `labels` no class became known for `no_data_hours`; `runs` no run for "
        "`no_run_hours`; `record` the job `verify` or `verify_quick` found an edit; `sample` the "
        "audit sample (`[audit] sample_nodes`) crosses its anytime bound; `lists` a list "
        "(`[[lists]]`) holds more wrong nodes than it promised.",
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
