"""A whole `ringfence.toml`: one module per table, put together here.

docs/configuration.md is generated from the descriptions of the fields.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import Field, SecretStr

from ringfence.connector.mapping import GraphMapping
from ringfence.jobs.config.alarms import AlarmSettings
from ringfence.jobs.config.audit import AuditSettings
from ringfence.jobs.config.conformal import ConformalSettings
from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.config.graph import GraphSettings
from ringfence.jobs.config.labels import ColumnSettings, NodeSettings, RelationshipSettings
from ringfence.jobs.config.mlflow import TrackingSettings
from ringfence.jobs.config.model import ModelSettings
from ringfence.jobs.config.neo4j import Neo4jSettings
from ringfence.jobs.config.retrain import RetrainSettings
from ringfence.jobs.config.schedule import ScheduleSettings
from ringfence.jobs.config.section import Section
from ringfence.jobs.config.serve import ServeSettings
from ringfence.jobs.config.telemetry import TelemetrySettings

__all__ = [
    "SECRETS",
    "AlarmSettings",
    "AuditSettings",
    "ColumnSettings",
    "ConformalSettings",
    "EngineSettings",
    "GraphSettings",
    "ModelSettings",
    "Neo4jSettings",
    "NodeSettings",
    "RelationshipSettings",
    "RetrainSettings",
    "ScheduleSettings",
    "ServeSettings",
    "Settings",
    "TelemetrySettings",
    "TrackingSettings",
    "tables",
]


class Settings(Section):
    """A whole `ringfence.toml`."""

    project: str = Field(
        "default", min_length=1, description="Name under which runs and sets are kept apart."
    )
    neo4j: Neo4jSettings = Field(default_factory=Neo4jSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    graph: GraphSettings
    model: ModelSettings = Field(default_factory=ModelSettings)
    conformal: ConformalSettings = Field(default_factory=ConformalSettings)
    engine: EngineSettings = Field(default_factory=EngineSettings)
    alarms: AlarmSettings = Field(default_factory=AlarmSettings)
    serve: ServeSettings = Field(default_factory=ServeSettings)
    schedule: ScheduleSettings = Field(default_factory=ScheduleSettings)
    retrain: RetrainSettings = Field(default_factory=RetrainSettings)
    telemetry: TelemetrySettings = Field(default_factory=TelemetrySettings)
    tracking: TrackingSettings = Field(default_factory=TrackingSettings)

    def mapping(self) -> GraphMapping:
        """Return the names in the user's graph as the connector takes them."""
        return self.graph.mapping()

    @property
    def network(self) -> str:
        """The network that a training would train, for one label or for several."""
        typed = self.mapping().typed is not None
        return self.model.typed_network if typed else self.model.network

    def digest(self) -> str:
        """Return a hash of what decides a run's sets, for its record: no secrets, no schedule."""
        hidden = {**SECRETS, **DECIDES_NO_SET, "audit": SECRETS["audit"] | RETENTION}
        body = self.model_dump(mode="json", exclude=hidden)
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]


def tables() -> Iterator[tuple[str, type[Section]]]:
    """Yield the name and the class of every table of the file."""
    for name, field in Settings.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield name, kind


def _secrets(kind: type[Section]) -> set[str]:
    return {
        key for key, field in kind.model_fields.items() if SecretStr in get_args(field.annotation)
    }


DECIDES_NO_SET: Any = {
    "alarms": True, "retrain": True, "schedule": True, "serve": True, "telemetry": True,
    "tracking": True,
}  # fmt: skip
RETENTION = {"keep_days", "keep_open_days"}  # of [audit]: how long details are kept
SECRETS: dict[str, set[str]] = {name: _secrets(kind) for name, kind in tables() if _secrets(kind)}
"""The settings of each table that come from the environment only."""
