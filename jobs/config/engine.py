"""`[engine]`: where files are kept and in what portions data moves."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ringfence.jobs.config.section import Section


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
    check_nodes: int = Field(
        1_000,
        ge=0,
        description="How many nodes of the mirror each run compares with the graph, in turn: "
        "1000 go through a million nodes within 1000 runs. 0: none.",
    )
    read_rows: int = Field(10_000, ge=1, description="Rows per block read from Neo4j.")
    write_rows: int = Field(1_000, ge=1, description="Nodes per Neo4j write transaction.")
    lease_seconds: float = Field(
        120.0, gt=0, description="How long a silent process keeps others from scoring."
    )
