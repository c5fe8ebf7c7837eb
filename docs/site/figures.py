"""The figures in docs/comparison.md, operations.md and speed.md, from benchmarks and from the code.

Those of operations.md are what doctor predicts, the others what the benchmarks wrote.
`python docs/site/figures.py` writes them into the pages, between their marks; a test compares.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def measured(name: str) -> dict[str, Any]:
    """Return what a benchmark wrote."""
    return dict(json.loads((DOCS / f"benchmarks/{name}.json").read_text(encoding="utf-8")))


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield what was compared, the alternative's figure, ringfence's, and the command."""
    for row in measured("gds")["rows"]:
        yield (
            f"sets for {row['new']:,} new nodes in {row['nodes']:,}, seconds on the clock, fastest",
            f"{row['gds_seconds']:.2f} (a full cycle of GDS: project, embed, classify, write)",
            f"{row['ringfence_seconds']:.2f}",
            "make bench-gds",
        )
    for row in measured("incremental")["rows"]:
        wanted = (1_000_000, "uniform", 1_000)
        if (row["nodes"], row["attachment"], row["new"]) == wanted and row["network"] != "appnp":
            yield (
                f"forward pass of {row['network'].upper()} for 1,000 new nodes in a million, CPU s",
                f"{row['pyg_seconds']:.1f} (PyG, the whole graph)",
                f"{row['seconds']:.3f}",
                "python -m benchmarks.incremental",
            )
    by_command = {
        row["command"]: row
        for row in measured("cold")["rows"]
        if row.get("bytecode", "compiled") == "compiled"
    }
    yield (
        "memory of a process that has nothing to do, MB",
        f"{by_command['import torch + PyG']['peak_mb']:,.0f} (importing torch and PyG alone)",
        f"{by_command['score']['peak_mb']:,.0f} (`ringfence score`)",
        "python -m benchmarks.cold",
    )
    drift = {(row["world"], row["mode"]): row for row in measured("drift")["rows"]}
    for world in ("gradual", "sudden"):
        frozen, ours = drift[world, "frozen"], drift[world, "bands, window 500 + adapt .05, DAPS"]
        yield (
            f"coverage under {world} change, 90 % promised, worst block of four runs beside it",
            f"{frozen['covered']:.1%}, {frozen['worst']:.1%} (calibrated once, as libraries do)",
            f"{ours['covered']:.1%}, {ours['worst']:.1%}",
            "python -m benchmarks.drift",
        )


def comparison() -> str:
    """Return what was measured beside alternatives as a table."""
    head = ["| what | alternative | ringfence | printed by |", "|---|---|---|---|"]
    lines = [f"| {what} | {other} | {own} | `{by}` |" for what, other, own, by in rows()]
    return "\n".join(head + lines)


def sizing() -> str:
    """Return what doctor would predict for some graphs as a table."""
    from ringfence.jobs.project.memory import predict

    head = ["| nodes | `score`, GB | `train`, GB | disk, GB |", "|---|---|---|---|"]
    lines = []
    for nodes in (10_000, 100_000, 1_000_000, 10_000_000):
        need = predict(nodes, 10 * nodes, width=64)
        sizes = (f"{bytes_ / 1e9:.2g}" for bytes_ in (need.score, need.train, need.disk))
        lines.append(f"| {nodes:,} | {' | '.join(sizes)} |")
    return "\n".join(head + lines)


def page_times() -> str:
    """Return how fast the dashboard's pages answered as a table."""
    head = ["| page | median ms | 95 % within ms | CPU ms |", "|---|---|---|---|"]
    lines = [
        f"| `{row['page']}` | {row['median_ms']} | {row['within_ms']} | {row['cpu_ms']} |"
        for row in measured("audit_pages")["rows"]
    ]
    return "\n".join(head + lines)


PAGES: dict[str, Callable[[], str]] = {
    "comparison.md": comparison,
    "operations.md": sizing,
    "speed.md": page_times,
}


def with_figures(page: str, figures: str) -> str:
    """Return the page with the figures between its marks."""
    between = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}\n\n{figures}\n\n{END}", page)


if __name__ == "__main__":
    for name, figures in PAGES.items():
        text = (DOCS / name).read_text(encoding="utf-8")
        (DOCS / name).write_text(with_figures(text, figures()), encoding="utf-8")
        sys.stdout.write(f"{name}\n")
