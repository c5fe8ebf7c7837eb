"""`ringfence train`: train a new model version and set its calibration nodes aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.jobs.cli.console import open_with_progress, print_report, say, say_sentence
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.training.train import TrainReport


def train(config: Config = None, as_json: AsJson = False) -> None:
    """Train a new model version on the labelled nodes and set its calibration nodes aside."""
    with open_with_progress(config, "training") as (workspace, report):
        from ringfence.jobs.training.train import run_training

        most = workspace.settings.model.max_epochs
        trained = run_training(
            workspace,
            report,
            lambda epoch: report("training, epochs", epoch.number + 1, most),
            _say_nothing if as_json else say_sentence,
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
    say(trained.guarantee + ".")
    for sentence in trained.promise:
        say_sentence(sentence)
    for difference in trained.differences:
        say(f"Changed: {difference}.")
