"""`[telemetry]`: log lines and traces that a run emits while it works."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from ringfence.jobs.config.section import Section


class TelemetrySettings(Section):
    """Log lines and OpenTelemetry traces of runs; both are off unless switched on here."""

    log: Literal["off", "text", "json"] = Field(
        "off",
        description="Write a line to stderr when a verb begins, after each of its steps and when "
        "it ends, with the id of the run: for people (`text`) or as one JSON object per line.",
    )
    traces: bool = Field(
        False,
        description="Send a trace of each run, a span per step, to `endpoint`. Needs the extra "
        "`telemetry`. A receiver that is away costs a run at most `timeout_seconds`, and no set.",
    )
    endpoint: str = Field(
        "http://localhost:4318/v1/traces",
        pattern=r"^https?://",
        description="Where traces go: OTLP over HTTP.",
    )
    headers: SecretStr | None = Field(
        None,
        description="Environment only. Headers for the receiver, such as a token: "
        "`name=value,name=value`.",
    )
    lineage: str = Field(
        "",
        description="Where `score` and `audit` send OpenLineage events: the address of a receiver, "
        "as http://marquez:5000, or a file that gets a line per event (relative to this file). "
        "Needs the extra `openlineage`. Empty: nowhere.",
    )
    lineage_key: SecretStr | None = Field(
        None, description="Environment only. API key for the receiver of OpenLineage events."
    )
    timeout_seconds: float = Field(
        3.0, gt=0, le=60, description="How long a run waits for the receiver at its end."
    )
