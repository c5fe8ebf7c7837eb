"""Write the report: one HTML file, and the same tables as CSV, JSON and Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.store import migrate
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.integrity.chain_check import chain_words
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.views.tables import TABLES, as_csv

FORMATS = ("html", "csv", "json", "parquet")


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """What `ringfence report` wrote."""

    folder: str
    files: tuple[str, ...]
    bytes: int


def run_report(settings: Settings, folder: Path, formats: tuple[str, ...]) -> ReportFiles:
    """Write the report in the given forms; files of an earlier one are replaced."""
    unknown = set(formats) - set(FORMATS)
    if unknown or not formats:
        raise ConfigError(
            found=f"--format {', '.join(sorted(unknown)) or 'nothing'}",
            needed=f"some of {', '.join(FORMATS)}",
        )
    folder.mkdir(parents=True, exist_ok=True)
    with open_audit(settings) as store:
        migrate.require_sql(store)
        queries = ProjectQueries(store, settings.project)
        written: list[Path] = []
        for name in dict.fromkeys(formats):
            written += _WRITERS[name](queries, settings, folder)
    size = sum(path.stat().st_size for path in written)
    return ReportFiles(str(folder), tuple(map(str, written)), size)


def _html(queries: ProjectQueries, settings: Settings, folder: Path) -> list[Path]:
    require_templates()
    from ringfence.jobs.report.page import html

    path = folder / "report.html"
    _, chain_sentence = chain_words(queries, settings)
    path.write_text(html(queries, chain_sentence, queries.now_ns()), encoding="utf-8")
    return [path]


def require_templates() -> None:
    """Raise `ConfigError` where the parts that write pages are not installed."""
    try:
        import jinja2  # noqa: F401
    except ModuleNotFoundError as error:
        raise _missing(error) from None


def _csv(queries: ProjectQueries, _settings: Settings, folder: Path) -> list[Path]:
    paths = []
    for name, view in TABLES.items():
        path = folder / f"{name}.csv"
        path.write_text(as_csv(view.read(queries.unlimited())), encoding="utf-8", newline="")
        paths.append(path)
    return paths


def _json(queries: ProjectQueries, settings: Settings, folder: Path) -> list[Path]:
    total = queries.verdict()
    body = {
        "project": queries.project,
        "verdict": as_row(total) if total else None,
        "counts": queries.counts().as_dict(),
        "chain": chain_words(queries, settings)[1],
        "model_cards": [
            read_card(queries.store, queries.project, model.version).as_json()
            for model in queries.models()
        ],
        "tables": {name: view.read(queries.unlimited()).rows for name, view in TABLES.items()},
    }
    path = folder / "report.json"
    path.write_text(json.dumps(body, indent=1, allow_nan=False, default=str), encoding="utf-8")
    return [path]


def _parquet(queries: ProjectQueries, _settings: Settings, folder: Path) -> list[Path]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    paths = []
    for name, view in TABLES.items():
        table = view.read(queries.unlimited())
        rows = [{c.key: _plain(row.get(c.key)) for c in table.columns} for row in table.rows]
        empty = pa.table({column.key: pa.array([], pa.string()) for column in table.columns})
        path = folder / f"{name}.parquet"
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


_WRITERS: dict[str, Callable[[ProjectQueries, Settings, Path], list[Path]]] = {
    "html": _html,
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
}
