"""A project for notebooks: the commands as methods, tables as pandas frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ringfence.connector import coverage, runs
from ringfence.connector.keys import decode_key
from ringfence.jobs.audit_store import open_audit
from ringfence.jobs.auditing import AuditReport, run_audit
from ringfence.jobs.config import load
from ringfence.jobs.migrating import run_migrations
from ringfence.jobs.settings import Settings
from ringfence.jobs.workspace import open_workspace

if TYPE_CHECKING:
    from ringfence.jobs.scoring import RunReport
    from ringfence.jobs.training import TrainReport


class Project:
    """What `ringfence.open` returns; every call opens the databases and closes them again."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def migrate(self) -> list[str]:
        """Bring both stores to this version and tell what was done."""
        with open_workspace(self.settings) as workspace:
            return run_migrations(workspace)

    def train(self) -> TrainReport:
        """Train a new model version."""
        from ringfence.jobs.training import run_training

        with open_workspace(self.settings) as workspace:
            return run_training(workspace)

    def score(self) -> RunReport:
        """Evaluate the nodes that are new."""
        from ringfence.jobs.scoring import run_scoring

        with open_workspace(self.settings) as workspace:
            return run_scoring(workspace)

    def audit(self) -> AuditReport:
        """Take in classes that became known."""
        with open_workspace(self.settings) as workspace:
            return run_audit(workspace)

    def coverage(self) -> pd.DataFrame:
        """Return the coverage rows, one per run and slice."""
        with open_audit(self.settings) as store:
            rows = coverage.stored(store, self.settings.project)
        return pd.DataFrame([row._asdict() for row in rows])

    def sets(self, run: int) -> pd.DataFrame:
        """Return a run's prediction sets: key, classes, size, class when known, covered."""
        with open_audit(self.settings) as store:
            blocks = runs.payload(store, self.settings.project, run, rows=10_000)
            rows = [
                {
                    "key": decode_key(one.node_key),
                    "classes": tuple(json.loads(one.classes)),
                    "size": one.size,
                    "class": one.label,
                    "covered": one.covered,
                }
                for block in blocks
                for one in block
            ]
        return pd.DataFrame(rows, columns=["key", "classes", "size", "class", "covered"])


def open_project(path: str | Path = "ringfence.toml") -> Project:
    """Read the configuration at `path`; nothing is connected before a method needs it."""
    return Project(load(Path(path)))
