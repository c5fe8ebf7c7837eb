"""`ringfence advise`: which rule the order of arrival supports, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.jobs.cli.console import open_with_progress, print_report, say
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.auditing.advice import RuleAdvice


def advise(config: Config = None, as_json: AsJson = False) -> None:
    """Say whether nodes or edges arrive in random order, which rule that supports, what to do."""
    with open_with_progress(config, "reading arrivals") as (workspace, _report):
        from ringfence.jobs.auditing.advice import form_advice

        advice = form_advice(workspace)
    print_report(advice, as_json, print_advice)


def print_advice(advice: RuleAdvice) -> None:
    """Show the advice with its evidence, the rule in force, and what to do."""
    say(advice.words)
    say(f"Rule in force: {advice.in_force}. To do: {advice.next_step}.")
