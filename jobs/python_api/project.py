"""A project for notebooks: the commands as methods, tables as pandas frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ringfence.connector.cores import wait_passively
from ringfence.connector.errors import ConfigError, RingfenceError
from ringfence.connector.extras import require_imports
from ringfence.connector.keys import typed_candidates
from ringfence.connector.store import coverage, migrate
from ringfence.connector.store.queries.nodes import find_prediction
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.rows import stored_coverage_columns
from ringfence.connector.store.worklist.marks import Mark, outcome_of, record_mark
from ringfence.connector.store.worklist.outcomes import read_outcomes
from ringfence.jobs.auditing.audit import AuditReport, run_audit
from ringfence.jobs.auditing.list_audit import audit_lists
from ringfence.jobs.config.load import load
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.audit_store import key_source, open_audit
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.python_api.answer import Answer, status_answer, verify_answer, why_answer
from ringfence.jobs.python_api.frames import (
    explanation_frame,
    models_frame,
    runs_frame,
    sets_frame,
    with_times,
    worklist_frame,
)
from ringfence.jobs.report.write import ReportFiles, run_report
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.views import charts
from ringfence.jobs.views.charts.model import Figure
from ringfence.jobs.views.explain import explain, run_explain
from ringfence.jobs.views.renderers import plotly
from ringfence.jobs.views.status import read_status
from ringfence.jobs.worklist.lead import describe_listed
from ringfence.jobs.worklist.list_choice import choose_list
from ringfence.jobs.worklist.outcome_table import OUTCOME_COLUMNS, outcome_row
from ringfence.jobs.worklist.request import filter_of, require_names
from ringfence.jobs.worklist.triage import COLUMNS, read_triage

if TYPE_CHECKING:
    from torch_geometric.data.data import Data
    from torch_geometric.data.hetero_data import HeteroData

    from ringfence.jobs.lifecycle.promotion import PromotionReport
    from ringfence.jobs.scoring.score import RunReport
    from ringfence.jobs.training.train import TrainReport

FIGURES: dict[str, Callable[[ProjectQueries], Figure]] = {
    "coverage": lambda queries: charts.coverage_per_run(queries.coverage("run")),
    "cumulative": lambda queries: charts.cumulative(queries.coverage("total")),
    "sizes": lambda queries: charts.set_sizes(queries.coverage("run")),
    "classes": lambda queries: charts.coverage_by_name(
        queries.named("class"), "classes", "Coverage by class"
    ),
    "groups": lambda queries: charts.coverage_by_name(
        queries.named("group"), "groups", "Coverage by group"
    ),
    "thresholds": lambda queries: charts.thresholds(queries.runs()),
    "arrivals": lambda queries: charts.arrivals(queries.runs()),
}
"""Charts of the pages, which a notebook draws with plotly."""


class Project:
    """What `ringfence.open` returns; every call opens the databases and closes them again."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def migrate(self) -> list[str]:
        """Bring both stores to this version and return what was done."""
        with open_workspace(self.settings) as workspace:
            return run_migrations(workspace)

    def train(self, promote: str | None = None, *, new_seed_key: bool = False) -> TrainReport:
        """Train a new model version: a candidate, unless there is a reason to `promote` it.

        `new_seed_key` gives it another seed key, where that of the versions so far is lost or known
        to others.
        """
        require_imports("train", "to train a model")
        from ringfence.jobs.training.train import run_training

        with open_workspace(self.settings) as workspace:
            return run_training(workspace, promote=promote, new_seed_key=new_seed_key)

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
        """Record classes that became known, and measure coverage."""
        with open_workspace(self.settings) as workspace:
            return run_audit(workspace)

    def models(self) -> pd.DataFrame:
        """Return the model versions, oldest first: state, data, coverage, shadow sets."""
        from ringfence.jobs.lifecycle.versions import read_versions

        with self._queries() as queries:
            return models_frame(read_versions(queries.store, queries.project))

    def coverage(self) -> pd.DataFrame:
        """Return the coverage rows, one per run and slice."""
        with self._queries() as queries:
            rows = coverage.stored(queries.store, queries.project)
        return with_times(pd.DataFrame([stored_coverage_columns(row) for row in rows]))

    def runs(self) -> pd.DataFrame:
        """Return the runs, oldest first."""
        with self._queries() as queries:
            return runs_frame(queries)

    def sets(self, run: int | None = None) -> pd.DataFrame:
        """Return the prediction sets of one run or of all, with the p-value of every class."""
        with self._queries() as queries:
            return sets_frame(queries, run)

    def worklist(self, class_: str = "", **filters: object) -> pd.DataFrame:
        """Return the nodes whose set holds a class, surest first; with `list="…"` those on a list.

        Filters are those of the page: `min_p`, `max_size`, `run`, `key`, `group="region=north"`,
        `known="any"`, `state="any"`, `until="2025-10-09"`, and `from`, which is a word of Python,
        as `**{"from": "2025-10-01"}`. Another name is refused.
        """
        require_names(filters)
        given = {name: str(value) for name, value in filters.items()}
        wanted = filter_of({**given, "class": class_})
        with self._queries() as queries:
            choice = choose_list(queries, wanted)
            frame = worklist_frame(queries, choice.wanted)
            if choice.is_list:
                frame.attrs["words"] = describe_listed(queries, choice)
            return frame

    def lists(self, *, detail: bool = False) -> pd.DataFrame:
        """Return each list's promised and realised share of wrong nodes, and its verdict.

        With `detail` for every run and every group too.
        """
        with self._queries() as queries:
            rows = audit_lists(queries.store, queries.project, detail=detail)
        return pd.DataFrame([row.as_json() for row in rows])

    def triage(self, run: int | None = None) -> pd.DataFrame:
        """Return the nodes of a run, the last with lists by default, by pile.

        The piles are `investigate`, `clear` and `open`; `.attrs["words"]` has the sentence of each
        list with its promise.
        """
        with self._queries() as queries:
            piles = read_triage(queries, run)
        frame = pd.DataFrame([node.as_row() for node in piles.nodes], columns=list(COLUMNS))
        frame.attrs["words"] = [facts.words for facts in piles.run.lists]
        return frame

    def outcomes(self) -> pd.DataFrame:
        """Return what came out of the work on nodes, a row per node that is done."""
        with self._queries() as queries:
            rows = [
                outcome_row(outcome) for outcome in read_outcomes(queries.store, queries.project)
            ]
        return pd.DataFrame(rows, columns=list(OUTCOME_COLUMNS))

    def mark(
        self,
        key: object,
        action: str,
        *,
        who: str,
        note: str = "",
        outcome: str | None = None,
        about: str | None = None,
        assign_to: str | None = None,
    ) -> Mark:
        """Mark a node as a person's work; `outcome` belongs to `done`, `assign_to` to `claim`."""
        with self._queries() as queries:
            stored = find_prediction(queries, typed_candidates(str(key)))
            node_key = str(key) if stored is None else stored.node_key
            source = key_source(self.settings)
            said = None if outcome is None else outcome_of(outcome)
            return record_mark(
                queries.store, queries.project, source, node_key, who, action, note,
                outcome=said, about=about, assignee=assign_to,
            )  # fmt: skip

    def explain(self, key: object) -> pd.DataFrame:
        """Return the p-values of one node by class; `.attrs["words"]` has its set as a sentence."""
        with self._queries() as queries:
            explanation = explain(queries, str(key))
        if explanation is None:
            raise ConfigError(
                found=f"no node with the key {key!r} was evaluated",
                needed="the key of a node that has a set",
            )
        return explanation_frame(explanation)

    def why(self, key: object, *, seconds: float = 30.0) -> Answer:
        """Say what a node's set rests on: p-values without each neighbour, type and column.

        No step begins after `seconds`.
        """
        with open_workspace(self.settings) as workspace:
            return why_answer(run_explain(workspace, str(key), why=True, seconds=seconds))

    def status(self) -> Answer:
        """Return the project at a glance, from the audit store alone."""
        with self._queries() as queries:
            return status_answer(read_status(queries.store, queries.project))

    def verify(self, *, quick: bool = False) -> Answer:
        """Compare chain, rows and graph, and derive again what follows; changes nothing."""
        with open_workspace(self.settings) as workspace:
            return verify_answer(run_verification(workspace, quick=quick))

    def report(
        self, folder: str | Path = "ringfence-report", formats: Sequence[str] = ("html",)
    ) -> ReportFiles:
        """Write the audit as html, csv, json or parquet to a folder."""
        return run_report(self.settings, Path(folder), tuple(formats))

    def query(self, cypher: str) -> pd.DataFrame:
        """Return the rows of a reading Cypher query; any other is refused."""
        from ringfence.connector.neo4j.reading_query import run_reading_query

        with open_workspace(self.settings) as workspace:
            return pd.DataFrame([row.data() for row in run_reading_query(workspace.graph, cypher)])

    def to_pyg(self) -> Data | HeteroData:
        """Return the graph as the mirror has it: PyG's `Data`, with several labels `HeteroData`.

        Nodes have `x`, `y` (-1 where the class is not known), `created_ns`, `keys_of_nodes` and,
        once there is a model, `train_mask`, `val_mask` and `calibration_mask`. With several labels
        `x` is encoded as the model in use does it. All of it is a copy.
        """
        require_imports("train", "to give the graph as PyG's Data")
        from ringfence.jobs.training.pyg_data import load_pyg

        with open_workspace(self.settings) as workspace:
            return load_pyg(workspace)

    def figure(self, name: str = "coverage") -> Any:
        """Return a plotly figure: coverage, cumulative, sizes, classes, groups, thresholds."""
        with self._queries() as queries:
            return draw_figure(queries, name)

    def _repr_html_(self) -> str:
        """What a notebook shows of a project."""
        name, _, rest = repr(self).partition(": ")
        return f"<p><strong>{escape(name)}</strong>: {escape(rest)}</p>"

    def __repr__(self) -> str:
        """Name, runs, and the verdict; a project without a store says so."""
        name = f"Project {self.settings.project!r}"
        try:
            with self._queries() as queries:
                counts, total = queries.counts(), queries.total()
                runs = queries.runs(last=1)
        except RingfenceError as error:
            return f"{name}: {error.found}"
        said = total.words if total else "no audit yet"
        last = f"run {runs[-1].seq} was the last" if runs else "no run yet"
        return f"{name}: {last}; {counts.evaluated:,} nodes evaluated; {said}"

    @contextmanager
    def _queries(self) -> Iterator[ProjectQueries]:
        with open_audit(self.settings) as store:
            migrate.require_sql(store)
            yield ProjectQueries(store, self.settings.project)


def open_project(path: str | Path | None = None) -> Project:
    """Read the configuration at `path`; nothing is connected before a method needs it."""
    wait_passively()
    return Project(load(None if path is None else Path(path)))


def draw_figure(queries: ProjectQueries, name: str) -> Any:
    """Return a chart as a plotly figure."""
    if name not in FIGURES:
        raise ConfigError(found=f"the figure {name!r}", needed=f"one of: {', '.join(FIGURES)}")
    if not plotly.available():
        raise ConfigError(
            found="plotly is not installed", needed="plotly", next_step="pip install plotly"
        )
    return plotly.as_plotly(FIGURES[name](queries))
