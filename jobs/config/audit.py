"""`[audit]`: the SQL audit store."""

from __future__ import annotations

from pydantic import Field, SecretStr, model_validator

from ringfence.jobs.config.section import Section


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
    new_key: SecretStr | None = Field(
        None,
        description="Environment only, for `ringfence rekey`: the key that comes after `key`.",
    )
    groups: list[str] = Field(
        default_factory=list,
        description="Node properties by which coverage is counted too, such as a region. They are "
        "read when a run is first audited: one added later counts for later runs only.",
    )
    window_runs: int = Field(
        10, ge=1, description="Coverage is also counted over this many runs; 1 for never."
    )
    keep_days: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="Details of runs that are older are removed by `ringfence prune`, once their "
        "classes are known and audited: scores, p-values of excluded classes, rows of the "
        "worklist. Keys, sets, classes, coverage and chain stay. 0 keeps everything.",
    )
    keep_open_days: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="After so many days the details of a run are removed although classes of its "
        "nodes are not known yet; one that becomes known later is judged as before. 0: such runs "
        "wait for ever.",
    )
    retention_days: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="How long the record must be kept at least, as your rules ask; the audit pack "
        "says it, and a `keep_days` below it is refused. It removes nothing by itself.",
    )
    verify_sample_nodes: int = Field(
        10_000,
        ge=0,
        strict=True,
        description="`ringfence verify` compares what came since the newest checkpoint, and older "
        "runs drawn at random with about so many nodes in all; its output says how likely an edit "
        "is noticed. 0 draws none: older rows are then left to `ringfence verify --full`.",
    )
    verify_full_days: float = Field(
        7.0,
        ge=0,
        allow_inf_nan=False,
        description="The scheduled verification compares everything when that was last done so "
        "many days ago. 0: each time.",
    )
    sample_nodes: int = Field(
        0,
        ge=0,
        strict=True,
        description="Each run draws so many of its nodes by a keyed hash, before anyone sees a set "
        "(all of them where it has fewer): `ringfence worklist --sample` lists those whose class "
        "someone should find out, and they have a coverage row of their own, which no choice of "
        "who gets labelled can bias. `ringfence doctor` says how many are enough. 0: none.",
    )
    recheck_days: float = Field(
        90.0,
        ge=0,
        description="A class that was noticed this recently is asked for again: it may have "
        "changed. Not needed with `[graph] labelled_at`.",
    )

    @model_validator(mode="after")
    def _nothing_goes_too_early(self) -> AuditSettings:
        if self.keep_days and self.keep_days < self.retention_days:
            raise ValueError(
                f"keep_days = {self.keep_days:g} would remove details that retention_days = "
                f"{self.retention_days:g} says must be kept"
            )
        return self
