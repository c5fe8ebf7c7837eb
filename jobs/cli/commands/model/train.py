"""`ringfence train`: train a new model version and set its calibration nodes aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.comparison_table import print_comparison
from ringfence.jobs.cli.console import open_with_progress, print_report, say, say_sentence
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.training.train import TrainReport


def train(
    promote: Annotated[
        bool, typer.Option("--promote", help="Take it into use at once; needs a --reason.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="Why it is taken into use at once; goes on record.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Train a new model version: a candidate, until `promote` takes it into use."""
    _require_reason(promote, reason)
    with open_with_progress(config, "training") as (workspace, report):
        from ringfence.jobs.training.train import run_training

        most = workspace.settings.model.max_epochs
        trained = run_training(
            workspace,
            report,
            lambda epoch: report("training, epochs", epoch.number + 1, most),
            _say_nothing if as_json else say_sentence,
            reason if promote else None,
        )
    print_report(trained, as_json, print_training)


def _say_nothing(_sentence: str) -> None:
    """JSON has what was announced in its report."""


def print_training(trained: TrainReport) -> None:
    """Show the new version, its accuracy and its guarantee."""
    say(
        f"Trained {trained.network}, version {trained.version}, on {trained.train:,} of "
        f"{trained.nodes:,} nodes in {trained.epochs} epochs; {len(trained.classes)} classes."
    )
    say(
        f"Accuracy: {trained.validation_accuracy:.3f} on {trained.validation:,} validation nodes, "
        f"{trained.calibration_accuracy:.3f} on {trained.calibration:,} calibration nodes."
    )
    if trained.comparison is not None:
        print_comparison(trained.comparison)
    elif trained.not_compared:
        say_sentence(f"not compared: {trained.not_compared}")
    say(trained.guarantee + ".")
    for sentence in trained.promise:
        say_sentence(sentence)
    for difference in trained.differences:
        say(f"Changed: {difference}.")
    if trained.state == "candidate":
        say(
            f"It is a candidate: runs go on with the model in use. To take it into use: "
            f'ringfence promote {trained.version} --reason "…"'
        )


def _require_reason(promote: bool, reason: str | None) -> None:
    from ringfence.connector.errors import ConfigError

    if promote == bool(reason and reason.strip()):
        return
    raise ConfigError(
        found="--promote without a --reason" if promote else "--reason without --promote",
        needed="both, to take the new model into use at once; or none of the two",
        next_step='ringfence train --promote --reason "new mapping"',
    )
