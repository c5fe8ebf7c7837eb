"""`ringfence explain`: show everything on record about one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say, say_sentence, table
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.explanation.reasons import Reason, Reasons
    from ringfence.jobs.views.explain import Explanation

MAX_REASONS_SHOWN = 15
MAX_CLASSES_SHOWN = 3


def explain(
    key: Annotated[str, typer.Argument(help="Key of an evaluated node.")],
    why: Annotated[
        bool, typer.Option("--why", help="Ask which neighbours and columns made the set.")
    ] = False,
    explainer: Annotated[
        str | None,
        typer.Option(
            help="exact; for modules of your own PyG's GNNExplainer or AttentionExplainer."
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, help="Time for --why, loading included; 0: no limit.")
    ] = 60.0,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show one node's set with its p-values, run, chain entry, neighbours and class when known."""
    with open_with_progress(config, "reading") as (workspace, progress):
        from ringfence.jobs.views.explain import run_explain

        explanation = run_explain(
            workspace, key, why or bool(explainer), explainer, progress, seconds or None
        )
    print_report(explanation, as_json, print_explanation)


def print_explanation(explanation: Explanation) -> None:
    """Show the set, the p-values, the class, the record and the neighbours."""
    from ringfence.jobs.views.explain import describe_class, describe_removal, record_of

    say(f"Node {explanation.key}: {explanation.sentence}.")
    for doubt in explanation.doubts:
        if doubt not in explanation.sentence:
            say_sentence(doubt)
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
    if explanation.removed_ns is not None:
        say_sentence(describe_removal(explanation.removed_ns))
    say(describe_class(explanation))
    table("Record", ("what", "value"), record_of(explanation))
    if explanation.neighbours is None:
        say("The graph could not be asked for neighbours.")
    if explanation.neighbours:
        rows = [
            (neighbour.name, neighbour.class_ or "–", _describe_set(neighbour.set))
            for neighbour in explanation.neighbours
        ]
        table("Neighbours", ("key", "class", "set"), rows)
    if explanation.reasons is not None:
        _print_reasons(explanation.reasons)


def _describe_set(names: Sequence[str] | None) -> str:
    return "–" if names is None else ", ".join(names) or "no class conforms"


def _print_reasons(reasons: Reasons) -> None:
    """Show what each neighbour, relationship type and column does, the strongest first."""
    from ringfence.jobs.explanation.reasons import odds_factor

    if reasons.stopped and not reasons.p_values:
        say_sentence(f"no reason was found: {reasons.stopped}")
        _print_left(reasons)
        return
    if not reasons.p_values:
        _print_weights(reasons)
        return
    say(f"Why, on {reasons.graph}; calibration nodes as they are, sets as they were.")
    if reasons.sentence:
        say_sentence(reasons.sentence)
    strongest = sorted(range(len(reasons.classes)), key=lambda at: -reasons.p_values[at])
    shown = strongest[:MAX_CLASSES_SHOWN]
    rows = [
        (
            reason.describe(),
            *(f"{reason.p_values[at] - reasons.p_values[at]:+.3f}" for at in shown),
            odds_factor(reason.evidence[reasons.likeliest]) if reason.evidence else "–",
            _describe_flips(reason),
        )
        for reason in reasons.reasons[:MAX_REASONS_SHOWN]
    ]
    titles = [f"p of {reasons.classes[at]} ({reasons.p_values[at]:.3f})" for at in shown]
    odds = f"with it, odds of {reasons.classes[reasons.likeliest]}"
    table("Without it, p-values move by", ("without", *titles, odds, "set"), rows)
    flips = sum(reason.flips for reason in reasons.reasons)
    say(
        f"{flips} single changes would change the set."
        if flips
        else "No single neighbour or column changes the set."
    )
    if reasons.smallest:
        say("The smallest changes found:")
    for change in reasons.smallest:
        say(f"  {change.describe()}.")
    if reasons.stopped:
        say_sentence(reasons.stopped)
    _print_left(reasons)


def _print_left(reasons: Reasons) -> None:
    """Say what was not looked at."""
    if reasons.asked < reasons.neighbours:
        say(f"Asked about {reasons.asked:,} of {reasons.neighbours:,} neighbours.")
    if reasons.left_unasked:
        say(
            f"{reasons.left_unasked:,} questions about neighbours, relationship types and columns "
            "were not asked; --seconds gives more time."
        )


def _describe_flips(reason: Reason) -> str:
    comes = [f"{name} comes in" for name in reason.enters]
    return "; ".join(comes + [f"{name} goes out" for name in reason.leaves]) or "the same"


def _print_weights(reasons: Reasons) -> None:
    """Show the weights that one of PyG's explainers gave."""
    say(
        f"Why, by PyG's {reasons.method}, on {reasons.graph}. A weight says how much of a neighbour"
    )
    say("or column the explainer keeps; it is an estimate and no p-value.")
    rows = [
        (reason.part.describe(), reason.weight) for reason in reasons.reasons[:MAX_REASONS_SHOWN]
    ]
    table("Weights", ("what", "weight"), rows)
