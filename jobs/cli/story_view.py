"""The story of a model's life on the terminal, each step in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.jobs.cli.comparison_table import print_comparison
from ringfence.jobs.cli.console import say, say_sentence, table
from ringfence.jobs.cli.options import with_config
from ringfence.jobs.cli.project_view import ProjectConsoleView

if TYPE_CHECKING:
    from ringfence.connector.alarm_records import AlarmState
    from ringfence.jobs.lifecycle.comparison import HoldoutReport
    from ringfence.jobs.lifecycle.promotion import PromotionReport
    from ringfence.jobs.lifecycle.shadow_summary import ShadowSummary
    from ringfence.jobs.samples.story import Chapter, StoryReport
    from ringfence.jobs.training.retrain import RetrainReport
    from ringfence.jobs.training.train import TrainReport


class StoryConsoleView(ProjectConsoleView):
    """Tells each step of the story on the terminal."""

    def trained(self, training: TrainReport) -> None:
        """Say what the first version is, and what it promises."""
        say(
            f"\n1. A first model. {training.network} {training.version} was trained on "
            f"{training.train:,} accounts and is in use."
        )
        say(training.guarantee + ".")

    def chapter(self, chapter: Chapter) -> None:
        """Say how many accounts the runs of a chapter covered."""
        if chapter.name == "promoted":
            say("\n8. After the promotion. The new accounts are as they were since the drift:")
        numbers = [str(seq) for seq in chapter.runs]
        runs = f"Run {numbers[0]}" if len(numbers) == 1 else f"Runs {numbers[0]} to {numbers[-1]}"
        say(
            f"   {runs}, by {chapter.version}: {chapter.evaluated:,} accounts have got their sets "
            f"({chapter.mean_size:.2f} classes on average). The kind of {chapter.known:,} became "
            f"known, and {100 * chapter.coverage:.1f} % of these sets hold it: {chapter.verdict}."
        )

    def drift_begins(self) -> None:
        """Say what changes."""
        say(
            "\n2. Drift. From now on all new accounts are opened by a new channel, the wallet of "
            "the bank's app; their balances are like those that other kinds had "
            "before. The model knows nothing of it."
        )

    def alarmed(self, alarms: tuple[AlarmState, ...], need: str) -> None:
        """Say which alarms fire, and whether a training is due."""
        say("\n3. Alarm." if alarms else "\n3. No alarm fires.")
        for alarm in alarms:
            say(f"   {alarm.rule}: {alarm.words}.")
        say(f"   Is a training due? The scheduled job `retrain` finds: {need}.")

    def retrained(self, report: RetrainReport) -> None:
        """Say that there is a candidate."""
        trained = report.trained
        say(
            f"\n4. Retraining. {trained.version} was trained beside the runs, on {trained.train:,} "
            f"accounts, and calibrated with {trained.calibration:,} that it never trained on. It "
            f"is {'in use' if report.promoted else 'a candidate: no set in the graph changes'}."
        )

    def compared(self, comparison: HoldoutReport) -> None:
        """Show the comparison on the holdout."""
        say("\n5. Comparison, on accounts that no version learns from:")
        print_comparison(comparison)

    def shadowed(self, shadow: ShadowSummary) -> None:
        """Say what the candidate would have done."""
        say("\n6. Shadow. The candidate scored the same new accounts; its sets stayed in SQL.")
        say_sentence(shadow.words)

    def taken_into_use(self, report: PromotionReport) -> None:
        """Say which version is in use now, and why."""
        if report.how == "promoted":
            say(f"\n7. Promotion. {report.version} is in use. On record: {report.reason}.")
        else:
            say(f"\n9. Rollback. {report.version} is in use again. On record: {report.reason}.")
        for difference in report.differences:
            say(f"   {difference}")

    def finished(self, report: StoryReport) -> None:
        """Show all chapters, what verifies, and where to look."""
        verified = report.verification
        rows = [
            (
                told.name,
                ", ".join(map(str, told.runs)),
                "first" if told.version == report.first.version else "candidate",
                told.known,
                f"{100 * told.coverage:.1f} %",
                f"{told.mean_size:.2f}",
                told.verdict,
            )
            for told in report.chapters
        ]
        say("")
        columns = ("chapter", "runs", "version", "known", "covered", "size", "verdict")
        table("The whole story (promised: 90 %)", columns, rows)
        problems = "; ".join(verified.problems) or "nothing was changed since it was decided"
        say(
            f"10. The record. {verified.entries:,} entries of the chain and "
            f"{verified.predictions:,} sets were verified: {problems}. "
            f"{report.twice} accounts were evaluated twice."
        )
        config = self.folder / "ringfence.toml"
        version = report.promotion.version
        again = f'ringfence promote {version} --reason "the drill is over"'
        say(
            "Where to look next:\n"
            f"  {with_config('ringfence serve', config)}     Today, Models, Audit trail\n"
            f"  {with_config('ringfence models', config)}    versions, states, shadow\n"
            f"  {with_config('ringfence verify', config)}\n"
            f"  {with_config(again, config)}"
        )
