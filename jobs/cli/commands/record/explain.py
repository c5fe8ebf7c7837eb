"""`ringfence explain`: show everything on record about one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say, table
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.views.explain import Explanation


def explain(
    key: Annotated[str, typer.Argument(help="Key of an evaluated node.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show one node's set with its p-values, run, chain entry, neighbours and class when known."""
    with open_with_progress(config, "reading") as (workspace, _):
        from ringfence.jobs.views.explain import run_explain

        explanation = run_explain(workspace, key)
    print_report(explanation, as_json, print_explanation)


def print_explanation(explanation: Explanation) -> None:
    """Show the set, the p-values, the class, the record and the neighbours."""
    from ringfence.jobs.views.explain import describe_class, record_of

    say(f"Node {explanation.key}: {explanation.sentence}.")
    table(
        f"p-values (alpha = {explanation.alpha:g})",
        ("class", "p", "level", "calibration nodes", "in the set"),
        [
            (
                row.class_,
                row.p,
                "–" if row.level is None else f"{row.level:.4g}",
                "–" if row.calibration is None else row.calibration,
                "yes" if row.in_set else "no",
            )
            for row in explanation.p_values
        ],
    )
    say(describe_class(explanation))
    table("Record", ("what", "value"), record_of(explanation))
    if explanation.neighbours is None:
        say("The graph could not be asked for neighbours.")
    if explanation.neighbours:
        rows = [
            (neighbour.key, neighbour.class_ or "–", _describe_set(neighbour.set))
            for neighbour in explanation.neighbours
        ]
        table("Neighbours", ("key", "class", "set"), rows)


def _describe_set(names: Sequence[str] | None) -> str:
    return "–" if names is None else ", ".join(names) or "no class conforms"
