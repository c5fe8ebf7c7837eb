"""The two pictures of docs/architecture.md as SVG text: the rooms, and one scoring run.

    python docs/architecture/make.py        # writes rooms.svg and scoring-run.svg beside this file

Each picture draws its own background, and changes its colours where the reader prefers dark ones,
so it can be read on a page of any colour. Folders stand in `ROOMS` once; a test compares them with
the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

JOBS: dict[str, dict[str, str]] = {
    "where people and programs come in": {
        "cli": "a module per verb",
        "python_api": "ringfence.open",
        "setup": "init, doctor, migrate",
        "samples": "demo, samples",
        "schedule": "jobs at their times",
        "dashboard": "pages, API, metrics",
        "mcp": "tools for agents",
    },
    "what shows the record": {
        "report": "one HTML file, tables",
        "worklist": "nodes to look at",
        "reproduce": "the paper's experiments",
        "views": "tables, charts, renderers",
    },
    "what is done": {
        "retention": "prune old details",
        "integrity": "verify, reconcile",
        "auditing": "coverage, alarms",
        "explanation": "why this set",
        "training": "train",
        "lifecycle": "promote, roll back",
        "scoring": "score, rescore",
    },
    "what all of them use": {
        "engines": "here, or on Ray",
        "inference": "the forward pass",
        "project": "workspace, session",
        "telemetry": "run ids, logs, traces",
        "config": "ringfence.toml",
    },
}
"""Rows from top to bottom: a folder imports folders to its right, or in a row below."""

CONNECTOR: dict[str, str] = {
    "store": "all SQL",
    "neo4j": "all Cypher",
    "mirror": "local columns",
}
MODELS: dict[str, str] = {
    "encoders": "columns as numbers",
    "networks": "one paper per file",
    "scores": "TPS, APS, RAPS, …",
    "conformal": "thresholds, sets",
    "calibration": "window, adaptive level",
    "promise": "classes, groups",
    "rules": "bands, NodeEx, EdgeEx",
    "selection": "lists with a promise",
    "guarantee": "law, verdict",
    "exchangeability": "martingales, advisor",
    "training": "full batch, samples",
    "inference": "incremental pass",
    "explanation": "what if, exactly",
    "trees": "columns, boosted trees",
    "sequences": "growing graphs",
    "sample": "simulated graphs",
    "comparison": "who is better",
    "baselines": "what to beat",
}
ROOMS: dict[str, list[str]] = {
    "jobs": [folder for row in JOBS.values() for folder in row],
    "connector": list(CONNECTOR),
    "models": list(MODELS),
    "migrations": ["sql", "cypher"],
}
WITHOUT_TORCH = (
    "auditing", "config", "dashboard", "engines", "explanation", "inference", "integrity",
    "lifecycle", "mcp", "project", "report", "retention", "schedule", "scoring", "setup",
    "telemetry", "views", "worklist",
)  # fmt: skip

STYLE = """
  .ground { fill: #ffffff }
  .room { fill: #f4f6f8; stroke: #8a97a5 }
  .folder { fill: #ffffff; stroke: #8a97a5 }
  .light { fill: #e3f1ec; stroke: #2f7d65 }
  .outside { fill: #fdf3e1; stroke: #a8731a }
  .strong { fill: #dfe9fb; stroke: #2b5fb4 }
  .line { stroke: #4a5663; fill: none }
  .life { stroke: #8a97a5; fill: none; stroke-dasharray: 3 4 }
  .barred { stroke: #b3372f; fill: none }
  .head { fill: #4a5663 }
  text { fill: #1c232b; font: 14px system-ui, "Segoe UI", "DejaVu Sans", sans-serif }
  .name { font-weight: 600 }
  .note { fill: #46525f; font-size: 12.5px }
  .bad { fill: #9c2b24 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #14191f }
    .room { fill: #1d242c; stroke: #76838f }
    .folder { fill: #28313a; stroke: #76838f }
    .light { fill: #1c3b32; stroke: #5dbb9c }
    .outside { fill: #3a2f1a; stroke: #d6a552 }
    .strong { fill: #1f3354; stroke: #7ba7f0 }
    .line { stroke: #b4c0cb }
    .life { stroke: #76838f }
    .barred { stroke: #f08a82 }
    .head { fill: #b4c0cb }
    text { fill: #eef2f5 }
    .note { fill: #b4c0cb }
    .bad { fill: #f2a09a }
  }
"""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with its left upper corner at (x, y)."""

    x: int
    y: int
    width: int
    height: int

    def draw(self, kind: str) -> str:
        """Return the rectangle."""
        return (
            f'<rect class="{kind}" x="{self.x}" y="{self.y}" width="{self.width}" '
            f'height="{self.height}" rx="6" stroke-width="1.2"/>'
        )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return one line of text."""
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def arrow(x1: int, y1: int, x2: int, y2: int, kind: str = "line") -> str:
    """Return a straight arrow; a barred one has no head."""
    head = ' marker-end="url(#head)"' if kind == "line" else ""
    return f'<path class="{kind}" stroke-width="1.6" d="M {x1} {y1} L {x2} {y2}"{head}/>'


def picture(width: int, height: int, title: str, parts: list[str]) -> str:
    """Return a whole SVG file."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
            'markerHeight="8" orient="auto-start-reverse">'
            '<path class="head" d="M 0 0 L 10 5 L 0 10 z"/></marker></defs>',
            f'<rect class="ground" width="{width}" height="{height}" rx="10"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def folder(box: Box, name: str, holds: str, kind: str = "folder") -> list[str]:
    """Return one folder: its name, and in a few words what it holds."""
    middle = box.x + box.width / 2
    return [
        box.draw(kind),
        text(middle, box.y + 21, name, "name", "middle"),
        text(middle, box.y + 39, holds, "note", "middle"),
    ]


def rooms() -> str:
    """Return the picture of the rooms and of the directions between them."""
    parts = _jobs_room(Box(20, 20, 960, 378))
    parts += _connector_room(Box(20, 464, 470, 178))
    parts += _models_room(Box(530, 464, 450, 374))
    parts += [
        arrow(255, 398, 255, 462),
        text(265, 426, "records, settings, a write session", "note"),
        arrow(755, 398, 755, 462),
        text(765, 426, "arrays, seeds, times", "note"),
        arrow(491, 553, 529, 553, "barred"),
        '<path class="barred" stroke-width="1.6" d="M 503 545 L 517 561 M 517 545 L 503 561"/>',
        text(510, 456, "no import, either way", "note bad", "middle"),
    ]
    for x, name, holds in (
        (36, "SQL", "what was decided"),
        (190, "Neo4j", "graph, projection"),
        (344, "local folder", "cache, models"),
    ):
        parts += [arrow(x + 65, 620, x + 65, 676)]
        parts += folder(Box(x, 678, 130, 50), name, holds, "outside")
    parts += folder(Box(36, 756, 438, 50), "migrations/", "sql/ revisions, cypher/ numbered files")
    parts += [
        text(530, 864, "An arrow means: imports, or talks to.", "note"),
        Box(530, 876, 22, 16).draw("light"),
        text(560, 889, "imports no torch", "note"),
        Box(690, 876, 22, 16).draw("outside"),
        text(720, 889, "outside the program", "note"),
        text(530, 912, "connector/ reads migrations/ as files. In jobs/, a folder imports", "note"),
        text(530, 930, "folders to its right or in a row below.", "note"),
    ]
    return picture(1000, 948, "The rooms of ringfence and the directions between them", parts)


def _jobs_room(box: Box) -> list[str]:
    parts = [
        box.draw("room"),
        text(box.x + 16, box.y + 26, "jobs/", "name"),
        text(box.x + 62, box.y + 26, "what happens when; no SQL, no Cypher", "note"),
    ]
    for i, (what, folders) in enumerate(JOBS.items()):
        y = box.y + 40 + i * 84
        parts.append(text(box.x + 16, y + 14, what, "note"))
        step = (box.width - 25) // max(5, len(folders))
        for place, (name, holds) in enumerate(folders.items()):
            kind = "light" if name in WITHOUT_TORCH else "folder"
            own = Box(box.x + 16 + place * step, y + 22, step - 9, 50)
            parts += folder(own, name, holds, kind)
    return parts


def _connector_room(box: Box) -> list[str]:
    parts = [
        box.draw("room"),
        text(box.x + 16, box.y + 26, "connector/", "name"),
        text(box.x + 106, box.y + 26, "the databases and the local mirror; no torch", "note"),
        text(
            box.x + 16, box.y + 54,
            "records  errors  keys  times: what the folders and jobs/ exchange", "note",
        ),
        text(box.x + 16, box.y + 78, "store knows no Neo4j, neo4j knows no SQL", "note"),
    ]  # fmt: skip
    for place, (name, holds) in enumerate(CONNECTOR.items()):
        parts += folder(Box(box.x + 16 + place * 154, box.y + 106, 130, 50), name, holds)
    return parts


def _models_room(box: Box) -> list[str]:
    parts = [
        box.draw("room"),
        text(box.x + 16, box.y + 26, "models/", "name"),
        text(box.x + 84, box.y + 26, "computing on arrays: no socket, file or clock", "note"),
    ]
    for i, (name, holds) in enumerate(MODELS.items()):
        place = Box(box.x + 14 + i % 3 * 144, box.y + 44 + i // 3 * 64, 136, 50)
        parts += folder(place, name, holds)
    return parts


LIVES = (
    ("score", "jobs/cli/commands"),
    ("run_scoring", "jobs/scoring"),
    ("session", "jobs/project"),
    ("SQL", "connector/store"),
    ("Neo4j", "connector/neo4j"),
    ("mirror", "connector/mirror"),
    ("models", "models/"),
)
STEPS: tuple[tuple[str, str, str], ...] = (
    ("score", "run_scoring", "ringfence score"),
    ("run_scoring", "session", "open a write session"),
    ("session", "SQL", "take the lease"),
    ("session", "Neo4j", "refuse a store older than the graph"),
    ("session", "Neo4j", "replay runs that a crash left decided"),
    ("run_scoring", "SQL", "the model in use, its weights by hash"),
    ("run_scoring", "Neo4j", "changes since the watermark"),
    ("Neo4j", "mirror", "append new rows"),
    ("run_scoring", "models", "forward pass, only where something changed"),
    ("models", "run_scoring", "calibration scores, thresholds, p-values, sets"),
    ("run_scoring", "SQL", "DECIDE: run, sets, chain, watermark"),
    ("run_scoring", "Neo4j", "APPLY: the stored sets, in blocks"),
    ("run_scoring", "SQL", "APPLIED: close the run"),
    ("run_scoring", "mirror", "save columns and kept rows"),
    ("session", "Neo4j", "anchor the chain's newest entry"),
    ("session", "SQL", "give the lease back"),
    ("run_scoring", "score", "report"),
)
RULES = (
    "DECIDE is one SQL transaction. A crash before it leaves nothing behind; after it, the next "
    "session replays what SQL holds and computes nothing again.",
    "The first statement of every SQL write transaction renews the lease; the first of every Neo4j "
    "write transaction shows its token to the fence node.",
)
STRONG = ("DECIDE", "APPLY:", "APPLIED")


def scoring_run() -> str:
    """Return one scoring run as a sequence of messages."""
    left, gap, top, step = 90, 150, 92, 40
    at = {name: left + i * gap for i, (name, _) in enumerate(LIVES)}
    bottom = top + step * len(STEPS) + 4
    parts: list[str] = []
    for name, place in LIVES:
        parts += [arrow(at[name], 72, at[name], bottom, "life")]
        parts += folder(Box(at[name] - 68, 22, 136, 50), name, place)
    for i, (source, target, words) in enumerate(STEPS):
        parts += _message(at[source], at[target], top + step * i + 24, words)
    parts += [text(22, bottom + 28 + 20 * i, line, "note") for i, line in enumerate(RULES)]
    return picture(
        1080, bottom + 48 + 20 * len(RULES), "One scoring run, message by message", parts
    )


def _message(x1: int, x2: int, y: int, words: str) -> list[str]:
    """An arrow with its words above it, on a ground that hides the lifelines behind them."""
    start = min(x1, x2) + 8
    kind = "strong" if words.startswith(STRONG) else "ground"
    width = round((7.8 if kind == "strong" else 6.9) * len(words)) + 10
    ground = Box(start - 4, y - 23, width, 18)
    return [
        ground.draw(kind),
        text(start + 1, y - 9, words, "note" if kind == "ground" else "note name"),
        arrow(x1, y, x2, y),
    ]


PICTURES = {"rooms.svg": rooms, "scoring-run.svg": scoring_run}


def main() -> None:
    """Write both pictures beside this file."""
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
