"""`ringfence advise`: which rule arrivals support; what a promise or a list costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say, say_sentence, table
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.auditing.advice import RuleAdvice
    from ringfence.jobs.scoring.class_trade_off import ClassTradeOff
    from ringfence.jobs.scoring.list_trade_off import ListTradeOff


def advise(
    class_: Annotated[
        str | None,
        typer.Option(
            "--class",
            help="Show what a promise to miss at most a share of this class would cost: miss rate, "
            "alert rate and precision, before choosing [conformal.classes].",
        ),
    ] = None,
    list_: Annotated[
        str | None,
        typer.Option(
            "--list",
            help="Show how long a list of [[lists]] is and how many of its nodes it finds at "
            "several promised shares, before choosing may_be_wrong.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="With --class or --list: draw the curve into this SVG file."),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Say whether nodes or edges arrive in random order, which rule that supports, what to do."""
    if class_ is not None and list_ is not None:
        raise typer.BadParameter("--class and --list: give one of them")
    if class_ is not None:
        _advise_on_class(class_, picture, config, as_json)
        return
    if list_ is not None:
        _advise_on_list(list_, picture, config, as_json)
        return
    if picture is not None:
        raise typer.BadParameter("--picture needs --class or --list: it draws the curve of one")
    with open_with_progress(config, "reading arrivals") as (workspace, _report):
        from ringfence.jobs.auditing.advice import form_advice

        advice = form_advice(workspace)
    print_report(advice, as_json, print_advice)


def _advise_on_class(class_: str, picture: Path | None, config: Path | None, as_json: bool) -> None:
    with open_with_progress(config, "measuring") as (workspace, report):
        from ringfence.jobs.scoring.class_trade_off import run_trade_off

        trade_off = run_trade_off(workspace, class_, progress=report)
    if picture is not None:
        from ringfence.jobs.views.charts import class_trade_off
        from ringfence.jobs.views.renderers.svg import draw

        picture.write_text(
            draw(class_trade_off(trade_off.class_, trade_off.rows)), encoding="utf-8"
        )
    print_report(trade_off, as_json, print_trade_off)


def _advise_on_list(list_: str, picture: Path | None, config: Path | None, as_json: bool) -> None:
    with open_with_progress(config, "measuring") as (workspace, report):
        from ringfence.jobs.scoring.list_trade_off import run_list_trade_off
        from ringfence.jobs.views.list_curve import save_curve

        trade_off = run_list_trade_off(workspace, list_, progress=report)
        save_curve(workspace.settings, trade_off)
    if picture is not None:
        from ringfence.jobs.views.charts.list_trade_off import list_trade_off
        from ringfence.jobs.views.renderers.svg import draw

        rows = [(row.may_be_wrong, row.listed, row.found) for row in trade_off.rows]
        picture.write_text(draw(list_trade_off(list_, rows)), encoding="utf-8")
    print_report(trade_off, as_json, print_list_trade_off)


def print_list_trade_off(trade_off: ListTradeOff) -> None:
    """Show list length, found share and wrong share for each promised share."""
    terms = trade_off.terms
    table(
        f"The list {terms.name} on {trade_off.validation:,} validation nodes as one run",
        ("may be wrong", "nodes", "of all nodes", "right nodes found", "wrong on it", "needs"),
        [
            (
                f"{100 * row.may_be_wrong:g} %",
                f"{row.nodes:,}",
                f"{100 * row.listed:.1f} %",
                f"{100 * row.found:.1f} %",
                "–" if row.wrong is None else f"{100 * row.wrong:.1f} %",
                f"{row.needed:,}",
            )
            for row in trade_off.rows
        ],
    )
    say_sentence(trade_off.words)
    say_sentence(_what_it_needs(trade_off))
    say_sentence(
        f"{trade_off.right:,} of the validation nodes are right for the list; they decided when "
        "training stopped, so new nodes may do a little worse"
    )


def _what_it_needs(trade_off: ListTradeOff) -> str:
    from ringfence.models.selection.registry import scope_named

    terms, scope = trade_off.terms, scope_named(trade_off.terms.per)
    given, kind = trade_off.wrong_references, terms.wrong
    if scope.needs_right:
        given, kind = trade_off.references - given, terms.right
    return (
        f'under "needs": how many calibration nodes have to be {kind} before {scope.can_hold}; of '
        f"{trade_off.references:,} calibration nodes {given:,} are"
    )


def print_trade_off(trade_off: ClassTradeOff) -> None:
    """Show miss rate, alert rate and precision for each share, and what they were measured on."""
    table(
        f"What a promise to {trade_off.class_} costs",
        ("miss at most", "missed, expected", "nodes alerted", "precision"),
        [
            (
                f"{100 * row.alpha:g} %",
                f"{100 * row.miss_rate:.1f} %",
                "all: too few labels" if row.in_every_set else f"{100 * row.alert_rate:.1f} %",
                "–" if row.precision is None else f"{row.precision:.3f}",
            )
            for row in trade_off.rows
        ],
    )
    for sentence in trade_off.sentences():
        say_sentence(sentence)
    say(
        'To choose one: [conformal] promise = "class" and, under [conformal.classes], '
        f"{trade_off.class_} = 0.1; then: ringfence train"
    )


def print_advice(advice: RuleAdvice) -> None:
    """Show the advice with its evidence, the rule in force, and what to do."""
    say(advice.words)
    say(f"Rule in force: {advice.in_force}. To do: {advice.next_step}.")
