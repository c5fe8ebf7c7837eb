"""``ringfence reproduce``: the paper's table and figures, remade."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["reproduce"]

QUICK = (3, 2)


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
    seed: Annotated[int, typer.Option(help="Seed of splits, training and sequences.")] = 7,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Go on from what is in the cache.")
    ] = True,
    cached_only: Annotated[
        bool, typer.Option("--cached-only", help="Run no sequence; show those in the cache.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Remake the paper's Table 1 and figures with the code that production uses."""
    from ringfence.jobs import display
    from ringfence.jobs.reproduce.reproducing import Wanted, run_reproduction, show

    if quick:
        sequences, edge_sequences, figures = min(sequences, QUICK[0]), QUICK[1], False
    wanted = Wanted(
        datasets, data, sequences, edge_sequences, figures, output, seed, resume, cached_only
    )
    with display.progress("reproducing") as report:
        done = run_reproduction(wanted, report)
    if as_json:
        display.print_json(done.as_dict())
    else:
        show(done)
