"""A whole `ringfence.toml`: one module per table, put together here.

docs/configuration.md is generated from the descriptions of the fields.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import Field, SecretStr, model_validator

from ringfence.connector.mapping import GraphMapping
from ringfence.jobs.config.alarms import AlarmSettings
from ringfence.jobs.config.audit import AuditSettings
from ringfence.jobs.config.conformal import ConformalSettings, Lists, ListSettings
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
    "SECRET_FIELDS",
    "TOP",
    "AlarmSettings",
    "AuditSettings",
    "ColumnSettings",
    "ConformalSettings",
    "EngineSettings",
    "GraphSettings",
    "ListSettings",
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
    seed_key: SecretStr | None = Field(
        None,
        description="Environment only. The secret that every node's random number u is made with: "
        "32 hexadecimal digits or more. Without it the first training keeps a random one in "
        "`[engine] folder`.",
    )
    lists: Lists = Field(
        [],
        description="`[[lists]]` tables: nodes of a class, or surely not of it, with the share of "
        "them that may be wrong.",
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

    @model_validator(mode="after")
    def _trees_have_raw_columns(self) -> Settings:
        from ringfence.models.networks.registry import NETWORK_NAMES, needs_raw_columns

        if needs_raw_columns(self.model.network) and not self.graph.nodes:
            raise ValueError(
                f'network = "{self.model.network}" reads raw columns, which [[graph.nodes]] and '
                f"[[graph.relationships]] name; a list of features has one of "
                f"{', '.join(NETWORK_NAMES)}"
            )
        return self

    @property
    def network(self) -> str:
        """The network that a training would train, for one label or for several."""
        strict = self.mapping().features_are_strict
        return self.model.network if strict else self.model.typed_network

    def digest(self) -> str:
        """Return a hash of what decides a run's sets, for its record: no secrets, no schedule."""
        hidden = {
            **SECRET_FIELDS,
            **DECIDES_NO_SET,
            "audit": SECRETS["audit"] | RETENTION,
            "neo4j": SECRETS["neo4j"] | HOW_TO_LOG_IN,
        }
        body = self.model_dump(mode="json", exclude=hidden)
        if not self.lists:
            body.pop("lists")  # a file without lists has the digest that it always had
        body["conformal"].pop("mode")  # a name for settings that stand beside it
        body.get("engine", {}).pop("unseen_transaction_seconds", None)  # when a node is read, only
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
HOW_TO_LOG_IN = {"auth", "credentials", "client_certificate", "client_key"}  # of [neo4j]
TOP = ""  # the table of settings that stand above all tables
SECRETS: dict[str, set[str]] = {
    TOP: _secrets(Settings),
    **{name: _secrets(kind) for name, kind in tables() if _secrets(kind)},
}
"""The settings of each table that come from the environment only."""
SECRET_FIELDS: Any = {
    **{name: names for name, names in SECRETS.items() if name != TOP},
    **dict.fromkeys(SECRETS[TOP], True),
}
"""The same, as pydantic takes what shall be left out."""
