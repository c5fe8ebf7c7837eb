"""`ringfence advise`: which rule arrivals support; what a promise to a class costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say, say_sentence, table
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.auditing.advice import RuleAdvice
    from ringfence.jobs.scoring.class_trade_off import ClassTradeOff


def advise(
    class_: Annotated[
        str | None,
        typer.Option(
            "--class",
            help="Show what a promise to miss at most a share of this class would cost: miss rate, "
            "alert rate and precision, before choosing [conformal.classes].",
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="With --class: draw the curve into this SVG file.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Say whether nodes or edges arrive in random order, which rule that supports, what to do."""
    if class_ is not None:
        _advise_on_class(class_, picture, config, as_json)
        return
    if picture is not None:
        raise typer.BadParameter("--picture needs --class: it draws the curve of one class")
    with open_with_progress(config, "reading arrivals") as (workspace, _report):
        from ringfence.jobs.auditing.advice import form_advice

        advice = form_advice(workspace)
    print_report(advice, as_json, print_advice)


def _advise_on_class(class_: str, picture: Path | None, config: Path | None, as_json: bool) -> None:
    with open_with_progress(config, "measuring") as (workspace, report):
        from ringfence.jobs.scoring.class_trade_off import run_trade_off

        found = run_trade_off(workspace, class_, progress=report)
    if picture is not None:
        from ringfence.jobs.views.charts import class_trade_off
        from ringfence.jobs.views.renderers.svg import draw

        picture.write_text(draw(class_trade_off(found.class_, found.rows)), encoding="utf-8")
    print_report(found, as_json, print_trade_off)


def print_trade_off(found: ClassTradeOff) -> None:
    """Show miss rate, alert rate and precision for each share, and what they were measured on."""
    table(
        f"What a promise to {found.class_} costs",
        ("miss at most", "missed, expected", "nodes alerted", "precision"),
        [
            (
                f"{100 * row.alpha:g} %",
                f"{100 * row.miss_rate:.1f} %",
                "all: too few labels" if row.in_every_set else f"{100 * row.alert_rate:.1f} %",
                "–" if row.precision is None else f"{row.precision:.3f}",
            )
            for row in found.rows
        ],
    )
    for sentence in found.sentences():
        say_sentence(sentence)
    say(
        'To choose one: [conformal] promise = "class" and, under [conformal.classes], '
        f"{found.class_} = 0.1; then: ringfence train"
    )


def print_advice(advice: RuleAdvice) -> None:
    """Show the advice with its evidence, the rule in force, and what to do."""
    say(advice.words)
    say(f"Rule in force: {advice.in_force}. To do: {advice.next_step}.")
