"""One reproduction, in order: sequences, table, figures, page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ringfence.connector.errors import ConfigError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.progress import Progress
from ringfence.jobs.reproduce.cache import Cache
from ringfence.jobs.reproduce.figures.draw import Drawn, draw_all
from ringfence.jobs.reproduce.page import write_results
from ringfence.jobs.reproduce.published import LARGE, STATISTICS, TABLE_1
from ringfence.jobs.reproduce.sequence_runs import Plan, Results, Skipped, run_datasets
from ringfence.jobs.reproduce.table import Row, rows_of

__all__ = ["Reproduction", "Wanted", "run_reproduction"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The command's options."""

    datasets: str
    data: Path | None
    sequences: int
    edge_sequences: int
    figures: bool
    output: Path
    seed: int
    resume: bool = True
    cached_only: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The datasets' short names."""
        if self.datasets in ("all", "large"):
            return TABLE_1 if self.datasets == "all" else LARGE
        names = tuple(name.strip() for name in self.datasets.split(",") if name.strip())
        local = [] if self.data is None else [file.stem for file in self.data.glob("*.npz")]
        unknown = [name for name in names if name not in STATISTICS and name not in local]
        if unknown or not names:
            raise ConfigError(
                found=f"--datasets {self.datasets!r}: no dataset is called {', '.join(unknown)}",
                needed=f"{', '.join(STATISTICS)}, or the name of a .npz file in --data",
                next_step="ringfence reproduce --datasets cora_ml,citeseer",
            )
        return names

    @property
    def command_line(self) -> str:
        """What to type to get the same again."""
        parts = [
            "ringfence reproduce",
            f"--datasets {self.datasets}",
            f"--data {self.data}" if self.data else "",
            f"--sequences {self.sequences}",
            f"--edge-sequences {self.edge_sequences}",
            "" if self.figures else "--no-figures",
            f"--output {self.output}",
            f"--seed {self.seed}",
            "--cached-only" if self.cached_only else "",
        ]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What was found, and where it was written."""

    rows: list[Row]
    skipped: list[Skipped]
    written: list[str]
    command_line: str

    def as_dict(self) -> JsonObject:
        """Plain values, for JSON."""
        return {**asdict(self), "inside": {row.name: row.inside for row in self.rows}}


def run_reproduction(wanted: Wanted, report: Progress) -> Reproduction:
    """Run what is wanted and write table, figures and page to ``wanted.output``."""
    plan = Plan(
        wanted.names,
        wanted.data,
        wanted.sequences,
        wanted.edge_sequences,
        wanted.seed,
        Cache(wanted.output / "cache" / f"seed-{wanted.seed}", wanted.resume),
        wanted.cached_only,
    )
    with _one_thread():
        results, skipped = run_datasets(plan, report)
        rows = rows_of(results)
        drawn = _figures(plan, results, wanted, report)
    written = write_results(wanted.output, rows, skipped, drawn, wanted.command_line)
    return Reproduction(rows, skipped, written, wanted.command_line)


def _figures(plan: Plan, results: Sequence[Results], wanted: Wanted, report: Progress) -> Drawn:
    if not (wanted.figures and results):
        return Drawn()
    return draw_all(plan, results, wanted.output, report)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One torch thread: on graphs of this size it is several times faster than two."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
