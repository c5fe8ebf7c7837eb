"""`[audit]`: the SQL audit store."""

from __future__ import annotations

from pydantic import Field, SecretStr

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
    retention_days: float = Field(
        0.0,
        ge=0,
        description="How long the record must be kept, as your rules ask; the audit pack says it "
        "beside how far the record reaches back. ringfence deletes nothing on record, whatever "
        "stands here; 0 names no period.",
    )
    recheck_days: float = Field(
        90.0,
        ge=0,
        description="A class that was noticed this recently is asked for again: it may have "
        "changed. Not needed with `[graph] labelled_at`.",
    )
