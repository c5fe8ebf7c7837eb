"""`[engine]`: where files are kept and in what portions data moves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from ringfence.jobs.config.names import RegisteredNames
from ringfence.jobs.config.section import Section

ENGINES = {
    "local": "ringfence.jobs.engines.local:LocalEngine",
    "ray": "ringfence.jobs.engines.ray_engine:RayEngine",
}
"""Engines by the name that a configuration uses; each is imported on first use."""

EngineName = Annotated[str, RegisteredNames(lambda: ENGINES)]


class EngineSettings(Section):
    """Where things are kept and in what portions they are moved."""

    folder: Path = Field(
        Path(".ringfence"), description="Models, mirror, embedded server; relative to this file."
    )
    kind: EngineName = Field(
        "local",
        description="Where the forward pass runs: `local` in this process; `ray` (extra `ray`) on "
        "workers that each hold a part of the graph, with the same bits. For graphs that one "
        "machine's memory can't hold; not faster on one machine (docs/scaling.md).",
    )
    partitions: int = Field(
        2, ge=1, le=1_024, description="`ray`: how many workers share the graph's rows."
    )
    address: str = Field(
        "",
        description="`ray`: address of an existing cluster, as host:port; empty: one is started on "
        "this machine for the command and ended with it.",
    )
    worker_folder: Path | None = Field(
        None,
        description="`ray`: folder on each worker's own disk for its partition; without it the "
        "same path as on this machine.",
    )
    worker_memory_mb: int | None = Field(
        None,
        ge=1,
        description="`ray`: memory that each worker is scheduled with, and may take beside what a "
        "process of Ray has when it starts; mapped files don't count.",
    )
    object_store_mb: int = Field(
        256,
        ge=80,
        description="`ray`: shared memory for rows in transit, of a cluster that is started here.",
    )
    overlap_seconds: float = Field(
        5.0,
        ge=0,
        description="How far behind the watermark each run reads again, for clients that stamp "
        "`created_at` with their own clocks; what is known already is dropped by key.",
    )
    unseen_transaction_seconds: float = Field(
        300.0,
        ge=0,
        description="How far the watermark stays behind the server's clock where the user may not "
        "see the open transactions of others: longer than any write transaction there stays open. "
        "What is newer is read in every run, and dropped by key where it is known.",
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

    @field_validator("worker_folder")
    @classmethod
    def _is_absolute(cls, folder: Path | None) -> Path | None:
        if folder is not None and not folder.is_absolute():
            raise ValueError("a worker has no folder to begin from: give the whole path")
        return folder
