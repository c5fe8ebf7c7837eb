"""Write the report: one HTML file, and the same tables as CSV, JSON and Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringfence.connector import migrate_sql
from ringfence.connector.errors import ConfigError
from ringfence.jobs.audit_store import open_audit
from ringfence.jobs.chain_words import chain_words
from ringfence.jobs.looking import Look
from ringfence.jobs.settings import Settings
from ringfence.jobs.shown import TABLES, as_csv

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
        migrate_sql.require_sql(store)
        look = Look(store, settings.project)
        written: list[Path] = []
        for name in dict.fromkeys(formats):
            written += _WRITERS[name](look, settings, folder)
    size = sum(path.stat().st_size for path in written)
    return ReportFiles(str(folder), tuple(map(str, written)), size)


def _html(look: Look, settings: Settings, folder: Path) -> list[Path]:
    try:
        from ringfence.jobs.report.page import html
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    with look.store.reading() as connection:
        now = look.store.now_ns(connection)
    path = folder / "report.html"
    path.write_text(html(look, chain_words(look, settings)[1], now), encoding="utf-8")
    return [path]


def _csv(look: Look, _settings: Settings, folder: Path) -> list[Path]:
    paths = []
    for name, make in TABLES.items():
        path = folder / f"{name}.csv"
        path.write_text(as_csv(make(look.whole())), encoding="utf-8", newline="")
        paths.append(path)
    return paths


def _json(look: Look, settings: Settings, folder: Path) -> list[Path]:
    body = {
        "project": look.project,
        "verdict": look.total(),
        "counts": look.counts(),
        "chain": chain_words(look, settings)[1],
        "tables": {name: make(look.whole()).rows for name, make in TABLES.items()},
    }
    path = folder / "report.json"
    path.write_text(json.dumps(body, indent=1, allow_nan=False, default=str), encoding="utf-8")
    return [path]


def _parquet(look: Look, _settings: Settings, folder: Path) -> list[Path]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    paths = []
    for name, make in TABLES.items():
        shown = make(look.whole())
        rows = [{c.key: _plain(row.get(c.key)) for c in shown.columns} for row in shown.rows]
        empty = pa.table({column.key: pa.array([], pa.string()) for column in shown.columns})
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


_WRITERS: dict[str, Callable[[Look, Settings, Path], list[Path]]] = {
    "html": _html,
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
}
