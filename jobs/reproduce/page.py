"""The results as files: README.md with tables and figures, CSV, JSON, and one interactive page."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ringfence.jobs.reproduce.figures.draw import Drawn
from ringfence.jobs.reproduce.findings import CLOSING, OPENING, findings
from ringfence.jobs.reproduce.sequence_runs import Skipped
from ringfence.jobs.reproduce.table import Row
from ringfence.jobs.reproduce.tables import TextTable, as_csv, as_markdown, as_text
from ringfence.jobs.views.renderers import plotly

__all__ = ["write_results"]


def write_results(
    output: Path, rows: Sequence[Row], skipped: Sequence[Skipped], drawn: Drawn, command: str
) -> list[str]:
    """Write everything to ``output``; returns the paths."""
    output.mkdir(parents=True, exist_ok=True)
    tables = as_text(rows) + drawn.tables
    stored = {
        "command": command,
        "rows": [{**asdict(row), "inside": row.inside} for row in rows],
        "skipped": [asdict(dataset) for dataset in skipped],
    }
    files = {
        "README.md": _markdown(rows, tables, skipped, drawn, command),
        "table.csv": as_csv(rows),
        "table.json": json.dumps(stored, indent=1, allow_nan=False) + "\n",
        "index.html": _page(rows, tables, skipped, drawn, command),
    }
    for name, text in files.items():
        (output / name).write_text(text)
    return [str(output / name) for name in files]


def _markdown(
    rows: Sequence[Row],
    tables: Sequence[TextTable],
    skipped: Sequence[Skipped],
    drawn: Drawn,
    command: str,
) -> str:
    parts = [
        "# The paper, reproduced",
        "*Written by `ringfence reproduce`; do not edit.*",
        f"```sh\n{command}\n```",
        OPENING,
        "## What came out",
        "\n".join(f"- {line}" for line in findings(rows)),
        "\n".join(f"- {dataset.name} skipped: {dataset.reason}" for dataset in skipped),
        "## Tables",
        *(as_markdown(table) for table in tables),
        "## Figures" if drawn.figures else "",
        *(
            f"### {figure.title}\n\n![{figure.title}](figures/{figure.name}.png)\n\n"
            f"{figure.caption}"
            for figure in drawn.figures
        ),
        CLOSING,
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _page(
    rows: Sequence[Row],
    tables: Sequence[TextTable],
    skipped: Sequence[Skipped],
    drawn: Drawn,
    command: str,
) -> str:
    live = bool(drawn.figures) and plotly.available()
    script = f"<script>{plotly.library_script()}</script>" if live else ""
    items = [*findings(rows), *(f"{dataset.name} skipped: {dataset.reason}" for dataset in skipped)]
    figures = [
        f"<h2>{html.escape(figure.title)}</h2>"
        + (
            plotly.as_html(figure)
            if live
            else f'<img src="figures/{figure.name}.png" alt="{html.escape(figure.title)}">'
        )
        + f"<p>{html.escape(figure.caption)}</p>"
        for figure in drawn.figures
    ]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            "<title>The paper, reproduced</title>",
            f"<style>{_STYLE}</style>{script}</head><body>",
            f"<h1>The paper, reproduced</h1><pre>{html.escape(command)}</pre>",
            f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in items)}</ul>",
            *(_table(table) for table in tables),
            *figures,
            "</body></html>",
        ]
    )


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1200px;padding:0 1rem}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{border-bottom:1px solid #ddd;padding:.3rem .7rem;text-align:left}"
    "pre{background:#f4f4f4;padding:.7rem;overflow:auto}img{max-width:100%}"
)


def _table(table: TextTable) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(line(row, "td") for row in table.rows)
    return (
        f"<h2>{html.escape(table.title)}</h2><p>{html.escape(table.note)}</p>"
        f"<table>{line(table.columns, 'th')}{body}</table>"
    )
