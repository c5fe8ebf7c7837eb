"""A project for notebooks: the commands as methods, tables as pandas frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ringfence.connector.keys import decode_key
from ringfence.connector.store import coverage, predictions
from ringfence.connector.store.rows import stored_coverage_columns
from ringfence.jobs.auditing.audit import AuditReport, run_audit
from ringfence.jobs.config.load import load
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.setup.migrate import run_migrations

if TYPE_CHECKING:
    from ringfence.jobs.lifecycle.promotion import PromotionReport
    from ringfence.jobs.scoring.score import RunReport
    from ringfence.jobs.training.train import TrainReport


class Project:
    """What `ringfence.open` returns; every call opens the databases and closes them again."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def migrate(self) -> list[str]:
        """Bring both stores to this version and tell what was done."""
        with open_workspace(self.settings) as workspace:
            return run_migrations(workspace)

    def train(self, promote: str | None = None) -> TrainReport:
        """Train a new model version: a candidate, unless there is a reason to `promote` it."""
        from ringfence.jobs.training.train import run_training

        with open_workspace(self.settings) as workspace:
            return run_training(workspace, promote=promote)

    def promote(self, version: str, reason: str) -> PromotionReport:
        """Take a model version into use."""
        from ringfence.jobs.lifecycle.promotion import run_promotion

        with open_workspace(self.settings) as workspace:
            return run_promotion(workspace, version, reason)

    def rollback(self, reason: str) -> PromotionReport:
        """Take back the newest promotion: the version before it is in use again."""
        from ringfence.jobs.lifecycle.promotion import run_rollback

        with open_workspace(self.settings) as workspace:
            return run_rollback(workspace, reason)

    def score(self) -> RunReport:
        """Evaluate the nodes that are new."""
        from ringfence.jobs.scoring.score import run_scoring

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
        return pd.DataFrame([stored_coverage_columns(row) for row in rows])

    def sets(self, run: int) -> pd.DataFrame:
        """Return a run's prediction sets: key, classes, size, class when known, covered."""
        with open_audit(self.settings) as store:
            blocks = predictions.payload(store, self.settings.project, run, rows=10_000)
            rows = [
                {
                    "key": decode_key(stored.node_key),
                    "classes": stored.classes,
                    "size": stored.size,
                    "class": stored.label,
                    "covered": stored.covered,
                }
                for block in blocks
                for stored in block
            ]
        return pd.DataFrame(rows, columns=["key", "classes", "size", "class", "covered"])


def open_project(path: str | Path = "ringfence.toml") -> Project:
    """Read the configuration at `path`; nothing is connected before a method needs it."""
    return Project(load(Path(path)))
