"""`ringfence train`: train a new model version and set its calibration nodes aside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.comparison_table import print_comparison
from ringfence.jobs.cli.console import open_with_progress, print_report, say, say_sentence
from ringfence.jobs.cli.exit_codes import ExitCode
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.training.repeat import RepeatReport
    from ringfence.jobs.training.train import TrainReport


def train(
    promote: Annotated[
        bool, typer.Option("--promote", help="Take it into use at once; needs a --reason.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="Why it is taken into use at once; goes on record.")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(help="Repeat the training of this version and compare; nothing is recorded."),
    ] = None,
    new_seed_key: Annotated[
        bool,
        typer.Option(
            "--new-seed-key", help="Another seed key than before: where it is lost or known."
        ),
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Train a new model version: a candidate, until `promote` takes it into use."""
    from ringfence.connector.extras import require_imports

    _require_reason(promote, reason)
    require_imports("train", "to train a model")
    if like is not None:
        _repeat(like, promote or new_seed_key, config, as_json)
        return
    with open_with_progress(config, "training") as (workspace, report):
        from ringfence.jobs.training.train import run_training

        most = workspace.settings.model.max_epochs
        trained = run_training(
            workspace,
            report,
            lambda epoch: report("training, epochs", epoch.number + 1, most),
            _say_nothing if as_json else say_sentence,
            reason if promote else None,
            new_seed_key,
        )
    print_report(trained, as_json, print_training)


def _repeat(like: str, asks_for_version: bool, config: Path | None, as_json: bool) -> None:
    """Repeat a training; exit with 1 where the weights differ."""
    from ringfence.connector.errors import ConfigError

    if asks_for_version:
        raise ConfigError(
            found="--like with --promote or --new-seed-key",
            needed="--like alone, which repeats a training and makes no version",
        )
    with open_with_progress(config, "training") as (workspace, report):
        from ringfence.jobs.training.repeat import run_repeat

        done = run_repeat(
            workspace,
            like,
            lambda epoch: report("training, epochs", epoch.number + 1, 0),
        )
    print_report(done, as_json, print_repeat)
    if not done.equal:
        raise typer.Exit(ExitCode.ERROR)


def print_repeat(done: RepeatReport) -> None:
    """Show whether the weights are equal, and what is not as it was."""
    say(
        f"Trained once more like {done.version}, on {done.train:,} train and "
        f"{done.validation:,} validation nodes in {done.epochs} epochs."
    )
    if done.equal:
        say(f"All {done.weights:,} weights are equal, bit by bit.")
    elif done.largest_difference is None:
        say("The weights differ: they have other shapes.")
    else:
        say(f"The weights differ, by {done.largest_difference:.3g} at most.")
    for difference in done.differences:
        say(f"Not as it was: {difference}.")
    say("Nothing was recorded.")


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
    for sentence in trained.graph:
        say_sentence(sentence)
    say(trained.guarantee + ".")
    for sentence in trained.promise:
        say_sentence(sentence)
    for difference in trained.differences:
        say(f"Changed: {difference}.")
    if trained.tracking:
        say_sentence(trained.tracking)
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
        needed="both, to take the new model into use at once; or neither",
        next_step='ringfence train --promote --reason "new mapping"',
    )
