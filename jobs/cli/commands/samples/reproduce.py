"""`ringfence reproduce`: remake the paper's table and figures with the same code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import print_json, say, table
from ringfence.jobs.cli.options import AsJson

if TYPE_CHECKING:
    from ringfence.jobs.reproduce.reproduction import Reproduction

QUICK_SEQUENCES = 3
QUICK_EDGE_SEQUENCES = 2
DEFAULT_SEED = 7
TABLES_SHOWN = 3  # on a terminal; README.md in the folder of the results has them all


def reproduce(
    datasets: Annotated[
        str, typer.Option(help="Short names with commas, `all` (the seven of Table 1), or `large`.")
    ] = "all",
    data: Annotated[
        Path | None, typer.Option(help="Folder with the datasets; else PyG downloads them.")
    ] = None,
    sequences: Annotated[int, typer.Option(min=1, help="Node sequences per dataset.")] = 10,
    edge_sequences: Annotated[int, typer.Option(min=0, help="Edge sequences per dataset.")] = 15,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first table: few sequences, no figures.")
    ] = False,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Draw the figures.")] = (
        True
    ),
    output: Annotated[Path, typer.Option("--output", "-o", help="Where results go.")] = Path(
        "docs/reproduction"
    ),
    seed: Annotated[
        int | None, typer.Option(help="Seed of splits, training and sequences; 7 by default.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Take the seed of this file's [model].")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Go on from what is in the cache.")
    ] = True,
    cached_only: Annotated[
        bool, typer.Option("--cached-only", help="Run no sequence; show those in the cache.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remake the paper's Table 1 and figures with the code that production uses."""
    from ringfence.connector.extras import require_imports
    from ringfence.jobs.cli.progress import show_progress

    require_imports("train", "to train the paper's networks")
    from ringfence.jobs.reproduce.reproduction import Wanted, run_reproduction

    if seed is None:
        seed = DEFAULT_SEED if config is None else _seed_of(config)
    if quick:
        sequences, edge_sequences = min(sequences, QUICK_SEQUENCES), QUICK_EDGE_SEQUENCES
        figures = False
    wanted = Wanted(
        datasets, data, sequences, edge_sequences, figures, output, seed, resume, cached_only
    )
    with show_progress("reproducing") as report:
        done = run_reproduction(wanted, report)
    if as_json:
        print_json(done.as_dict())
    else:
        print_reproduction(done)


def _seed_of(config: Path) -> int:
    from ringfence.jobs.config.load import load

    return load(config).model.seed


def print_reproduction(done: Reproduction) -> None:
    """Show the first tables, what was left out, and where the rest is."""
    from ringfence.jobs.reproduce.tables import as_text

    for comparison in as_text(done.rows)[:TABLES_SHOWN]:
        table(comparison.title, comparison.columns, comparison.rows)
    for skipped in done.skipped:
        say(f"{skipped.name} skipped: {skipped.reason}")
    for path in done.written:
        say(f"wrote {path}")
