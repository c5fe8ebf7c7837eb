"""Every setting of `ringfence.toml`: its type, its default and why, in one place.

docs/configuration.md is generated from the descriptions here.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, model_validator

from ringfence.connector.mapping import GraphMapping, RelationshipMapping, TimeKind
from ringfence.jobs.looking_settings import AlarmSettings, ServeSettings
from ringfence.jobs.section import Section

Fraction01 = Annotated[float, Field(gt=0, lt=1)]


class Neo4jSettings(Section):
    """The graph database."""

    uri: str = Field(
        "embedded",
        description="`embedded` starts or finds the zero-install server of this project; "
        "otherwise bolt://, bolt+s://, neo4j:// or neo4j+s:// without user or password in it.",
    )
    user: str = Field("neo4j", description="Who logs in.")
    password: SecretStr | None = Field(
        None, description="Environment only. Not needed for `embedded`, which makes its own."
    )
    database: str = Field("neo4j", description="Which database of the server.")
    tls: Literal["required", "off"] = Field(
        "required",
        description="A server that isn't on this machine must be reached by an encrypted scheme "
        "(bolt+s, neo4j+s); `off` allows plain text on purpose.",
    )


class AuditSettings(Section):
    """The SQL audit store."""

    url: str = Field(
        "sqlite:///.ringfence/audit.db",
        description="SQLAlchemy URL of the store: sqlite:///file (relative to this file) or "
        "postgresql+psycopg://user@host/database; a password does not belong here.",
    )
    password: SecretStr | None = Field(
        None, description="Environment only. Password of the SQL user."
    )
    key: SecretStr | None = Field(
        None,
        description="Environment only. Key of the audit chain's HMAC; without it a random one is "
        "kept in `[engine] folder`, outside the database.",
    )
    groups: list[str] = Field(
        default_factory=list,
        description="Node properties by which coverage is counted too, such as a region. They are "
        "read when a run is first audited: one added later counts for later runs only.",
    )
    window_runs: int = Field(
        10, ge=1, description="Coverage is also counted over this many runs; 1 for never."
    )
    recheck_days: float = Field(
        90.0,
        ge=0,
        description="A class that was noticed this recently is asked for again: it may have "
        "changed. Not needed with `[graph] labelled_at`.",
    )


class RelationshipSettings(Section):
    """One relationship type that carries messages."""

    type: str = Field(description="Relationship type.")
    undirected: bool = Field(
        True, description="Messages flow both ways; false keeps the stored direction."
    )
    created_at: str | None = Field(
        "created_at",
        description="Property with the creation time. An empty text says there is none: then "
        "relationships are read together with the new nodes they touch.",
    )


class GraphSettings(Section):
    """Where nodes, features, classes and times stand in your graph."""

    label: str = Field(description="Label of the nodes to predict.")
    key: str = Field(description="Property that is unique per node (text or number).")
    features: str | list[str] = Field(
        description="One property that holds a list of numbers, or a list of numeric properties."
    )
    class_property: str = Field(description="Property with the known class; absent where unknown.")
    labelled_at: str | None = Field(
        None,
        description="Property with the time at which the class was set, of the same type as "
        "`created_at`. With it an audit reads what is new; without it, it asks for every node "
        "whose class isn't known yet.",
    )
    created_at: str = Field("created_at", description="Property with a node's creation time.")
    time_kind: TimeKind = Field(
        "zoned",
        description="Type of every `created_at`: `zoned` or `local` datetimes (local ones are read "
        "as UTC) or integer `milliseconds` since 1970.",
    )
    relationships: list[RelationshipSettings] = Field(
        default_factory=list, description="Relationship types that carry messages."
    )
    manage_indexes: bool = Field(
        True,
        description="`ringfence migrate` may create the unique constraint on `key` and the range "
        "indexes on `created_at` that reading needs.",
    )


class ModelSettings(Section):
    """The network and how it is trained."""

    network: str = Field("GCN", description="GCN, GAT, APPNP, SAGE, MLP or `package.module:Class`.")
    hidden: int = Field(64, ge=1, description="Width of the hidden layer (the paper's).")
    dropout: float | None = Field(
        None, ge=0, lt=1, description="Dropout; without it the paper's value for the network."
    )
    learning_rate: float | None = Field(None, gt=0, description="Without it the network's default.")
    weight_decay: float | None = Field(None, ge=0, description="Without it the network's default.")
    max_epochs: int = Field(1000, ge=1, description="Training stops here at the latest.")
    patience: int = Field(100, ge=1, description="Epochs without a better validation loss.")
    batch_size: int = Field(
        0,
        ge=0,
        description="Train with sampled neighbourhoods of this many nodes at a time, for graphs "
        "that don't fit a full pass; 0 trains on the whole subgraph in each step.",
    )
    class_weights: bool = Field(False, description="Weigh rare classes up in the training loss.")
    seed: int = Field(
        0,
        description="Seed of the split, the training and every node's own random number u. "
        "Choose it once: it is part of what an auditor recomputes.",
    )
    train: Fraction01 = Field(0.5, description="Share of the labelled nodes to train on.")
    validation: Fraction01 = Field(0.2, description="Share for early stopping.")
    calibration: Fraction01 = Field(0.3, description="Share kept for calibration alone.")

    @model_validator(mode="after")
    def _shares_add_up(self) -> ModelSettings:
        total = self.train + self.validation + self.calibration
        if abs(total - 1) > 1e-9:
            raise ValueError(f"train + validation + calibration is {total:g}; it must be 1")
        return self


class ConformalSettings(Section):
    """The promise."""

    alpha: Fraction01 = Field(
        0.1, description="Miscoverage: sets hold the true class with probability >= 1 - alpha."
    )
    rule: Literal["NodeEx", "EdgeEx"] = Field(
        "NodeEx",
        description="NodeEx where nodes arrive in an exchangeable order, EdgeEx where edges do.",
    )
    score: Literal["APS", "TPS"] = Field("APS", description="Conformity score.")
    evaluate: Literal["arrival", "delay", "date"] = Field(
        "arrival",
        description="When a node gets its set: in the first run that finds it, once it is "
        "`delay_hours` old (so that a neighbourhood can form), or at `date`. Fixed when a model is "
        "trained: a time chosen after seeing sets would void the promise.",
    )
    delay_hours: float = Field(0.0, ge=0, description="Age at which `delay` evaluates a node.")
    date: datetime | None = Field(
        None, description="Moment of `date`, with time zone; nodes created later: on arrival."
    )
    drift_half_life_days: float | None = Field(
        None,
        gt=0,
        description="Let calibration nodes count less with age, half after this many days (Barber "
        "et al. 2023). Choose it before looking at scores; the guarantee then loses a bounded "
        "amount, and runs say so. Without it all ages count alike.",
    )
    edge_test_weight: Literal["one", "exact"] = Field(
        "one",
        description="EdgeEx only: weight of the evaluated node, the paper's 1 (safe) or its own "
        "1/degree (what the lemma proves).",
    )
    nonempty: bool = Field(
        False,
        description="Put the likeliest class into a set that would be empty, and say so. Can only "
        "raise coverage.",
    )

    @model_validator(mode="after")
    def _date_is_given(self) -> ConformalSettings:
        if self.evaluate == "date" and (self.date is None or self.date.tzinfo is None):
            raise ValueError('evaluate = "date" needs date with a time zone, 2027-01-31T00:00:00Z')
        return self


class EngineSettings(Section):
    """Where things are kept and in what portions they are moved."""

    folder: Path = Field(
        Path(".ringfence"), description="Models, mirror, embedded server; relative to this file."
    )
    overlap_seconds: float = Field(
        5.0,
        ge=0,
        description="How far behind the watermark each run reads again, for clients that stamp "
        "`created_at` with their own clocks; what is known already is dropped by key.",
    )
    read_rows: int = Field(10_000, ge=1, description="Rows per block read from Neo4j.")
    write_rows: int = Field(1_000, ge=1, description="Nodes per Neo4j write transaction.")
    lease_seconds: float = Field(
        120.0, gt=0, description="How long a silent process keeps others from scoring."
    )


class ScheduleSettings(Section):
    """When `ringfence schedule` does what; an empty text switches a job off."""

    timezone: str = Field("UTC", description="IANA name of the zone in which cron lines are meant.")
    score: str = Field(
        "every 10 minutes",
        description='When to score: a cron line like `*/10 * * * *`, "every 10 minutes", or empty.',
    )
    audit: str = Field("every hour", description="When to audit coverage.")
    reconcile: str = Field("30 3 * * *", description="When to compare graph and SQL and repair.")
    report: str = Field("", description="When to write the report.")
    retry_seconds: float = Field(
        60.0,
        gt=0,
        description="How soon a job is tried again after a store or server did not answer or "
        "another process was at work; other failures wait for the next ring.",
    )
    grace_seconds: float = Field(
        20.0,
        ge=0,
        description="How long a run may take to reach a stopping place after SIGTERM or Ctrl-C; "
        "then the process ends, and the next start finishes the run.",
    )
    tick_seconds: float = Field(
        5.0,
        gt=0,
        description="How often the scheduler shows that it lives and looks for jobs that are due.",
    )
    stale_seconds: float = Field(
        60.0,
        gt=0,
        description="Without a tick for so long the watchdog ends the process with exit code 3.",
    )


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

    def mapping(self) -> GraphMapping:
        """Return the names in the user's graph as the connector takes them."""
        g = self.graph
        return GraphMapping(
            label=g.label,
            key=g.key,
            features=(g.features,) if isinstance(g.features, str) else tuple(g.features),
            features_are_list=isinstance(g.features, str),
            class_property=g.class_property,
            created_at=g.created_at,
            time_kind=g.time_kind,
            relationships=tuple(
                RelationshipMapping(r.type, r.undirected, r.created_at or None)
                for r in g.relationships
            ),
        )

    def digest(self) -> str:
        """Return a hash of what decides a run's sets, for its record: no secrets, no schedule."""
        body = self.model_dump(mode="json", exclude={**SECRETS, **NO_MATTER})
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]


NO_MATTER: Any = {"alarms": True, "schedule": True, "serve": True}
SECRETS: Any = {
    "neo4j": {"password"},
    "audit": {"password", "key"},
    "alarms": {"webhook_secret", "smtp_password"},
    "serve": {"token"},
}
