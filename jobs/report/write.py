"""Write the report: one HTML file, and the same tables as CSV, JSON and Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.extras import require_imports
from ringfence.connector.store import migrate
from ringfence.connector.store.queries.period import count_period
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.integrity.chain_check import chain_words
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.report.period import Period, period_table, runs_of_period
from ringfence.jobs.views.tables import TABLES, Table, as_csv

FORMATS = ("html", "csv", "json", "parquet")


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """What `ringfence report` wrote."""

    folder: str
    files: tuple[str, ...]
    bytes: int


def run_report(
    settings: Settings,
    folder: Path,
    formats: tuple[str, ...],
    period: Period = Period(),  # noqa: B008 - frozen
) -> ReportFiles:
    """Write the report in the given forms; files of an earlier one are replaced.

    With a period, histories are of its runs alone, and coverage is counted for it.
    """
    unknown = set(formats) - set(FORMATS)
    if unknown or not formats:
        raise ConfigError(
            found=f"--format {', '.join(sorted(unknown)) or 'nothing'}",
            needed=f"some of {', '.join(FORMATS)}",
        )
    if "parquet" in formats:
        require_imports("parquet", "to write Parquet files")
    with open_audit(settings) as store:
        migrate.require_sql(store)
        queries, counted = _of_period(ProjectQueries(store, settings.project), period)
        folder.mkdir(parents=True, exist_ok=True)
        source = _Source(queries, settings, counted)
        written: list[Path] = []
        for name in dict.fromkeys(formats):
            written += _WRITERS[name](source, folder)
    size = sum(path.stat().st_size for path in written)
    return ReportFiles(str(folder), tuple(map(str, written)), size)


@dataclass(frozen=True, slots=True)
class _Source:
    """What a report is written from; `counted` is the coverage of its period, if it has one."""

    queries: ProjectQueries
    settings: Settings
    counted: Table | None

    def tables(self) -> list[Table]:
        """Return every table with all of its rows."""
        every = [view.read(self.queries.unlimited()) for view in TABLES.values()]
        return every if self.counted is None else [self.counted, *every]


def _of_period(queries: ProjectQueries, period: Period) -> tuple[ProjectQueries, Table | None]:
    if period.is_whole:
        return queries, None
    runs = runs_of_period(queries.store, queries.project, period)
    with queries.store.reading() as connection:
        rows = count_period(connection, queries.project, runs)
    within = queries.within(period.from_ns, period.until_ns)
    return within, period_table(rows, period.sentence)


def _html(source: _Source, folder: Path) -> list[Path]:
    require_templates()
    from ringfence.jobs.report.page import html

    path, queries = folder / "report.html", source.queries
    _, chain_sentence = chain_words(queries, source.settings)
    page = html(queries, chain_sentence, queries.now_ns(), period=source.counted)
    path.write_text(page, encoding="utf-8")
    return [path]


def require_templates() -> None:
    """Raise `ConfigError` where the parts that write pages are not installed."""
    try:
        import jinja2  # noqa: F401
    except ModuleNotFoundError as error:
        raise _missing(error) from None


def _csv(source: _Source, folder: Path) -> list[Path]:
    paths = []
    for table in source.tables():
        path = folder / f"{table.name}.csv"
        path.write_text(as_csv(table), encoding="utf-8", newline="")
        paths.append(path)
    return paths


def _json(source: _Source, folder: Path) -> list[Path]:
    queries = source.queries
    total = queries.verdict()
    body = {
        "project": queries.project,
        "verdict": as_row(total) if total else None,
        "counts": queries.counts().as_dict(),
        "chain": chain_words(queries, source.settings)[1],
        "model_cards": [
            read_card(queries.store, queries.project, model.version).as_json()
            for model in queries.models()
        ],
        "tables": {table.name: table.rows for table in source.tables()},
    }
    path = folder / "report.json"
    path.write_text(json.dumps(body, indent=1, allow_nan=False, default=str), encoding="utf-8")
    return [path]


def _parquet(source: _Source, folder: Path) -> list[Path]:
    import pyarrow as pa
    from pyarrow import parquet

    paths = []
    for table in source.tables():
        rows = [{c.key: _plain(row.get(c.key)) for c in table.columns} for row in table.rows]
        empty = pa.table({column.key: pa.array([], pa.string()) for column in table.columns})
        path = folder / f"{table.name}.parquet"
        parquet.write_table(pa.Table.from_pylist(rows) if rows else empty, path)
        paths.append(path)
    return paths


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _missing(error: ModuleNotFoundError) -> ConfigError:
    return ConfigError(
        found=f"{error.name} is not installed",
        needed="the parts that write reports",
        next_step="pip install 'ringfence[serve]'",
    )


_WRITERS: dict[str, Callable[[_Source, Path], list[Path]]] = {
    "html": _html,
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
}
