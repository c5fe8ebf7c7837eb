"""What the relationships bring to a version: its scorer beside the same one fitted without them.

`jobs.training.graph_check` fits and writes it into the manifest; here it is read, in words. Three
fits are beside the version's own, all on the same nodes: with a node's own columns alone, with them
and how many relationships it has, and with the ends of the relationships permuted within each type,
so that every node keeps its number of them. All are judged by log loss on validation nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ringfence.connector.json_types import JsonObject
from ringfence.jobs.project.model_files import GRAPH_CHECK_KEY

OWN_COLUMNS, NUMBERS, PERMUTED = "own columns", "numbers of relationships", "permuted ends"

LEAK_SHARE = 0.25
"""Of the lower baseline's log loss, below which a scorer is far above it: a leak is suspected."""
LEAK_ACCURACY = 0.9

Verdict = Literal["help", "numbers", "nothing", "harm"]

VERDICTS: dict[Verdict, str] = {
    "help": "the relationships help: which nodes are connected tells more of the class than own "
    "columns and numbers of relationships do",
    "numbers": "how many relationships a node has, what they hold, or what all their ends have in "
    "common, helps; which nodes are connected brings nothing measurable beyond that",
    "nothing": "the relationships bring nothing measurable: a node's own columns do as well",
    "harm": "the relationships do harm: a node's own columns alone do better",
}


@dataclass(frozen=True, slots=True)
class OtherFit:
    """The scorer fitted otherwise: its log loss and accuracy, and how much more it loses.

    `gain` is its loss minus the version's, the mean over nodes, with a 95 % interval.
    """

    name: str
    log_loss: float
    accuracy: float
    gain: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class GraphBenefit:
    """The version's log loss and accuracy on so many validation nodes, and the other fits.

    leak: which columns of neighbours tell most of the class, where a leak is suspected; else "".
    """

    nodes: int
    log_loss: float
    accuracy: float
    others: tuple[OtherFit, ...]
    fits: int
    seconds: float
    leak: str = ""

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> GraphBenefit | None:
        """Return what a manifest has of it; None where nothing was checked."""
        kept = manifest.get(GRAPH_CHECK_KEY)
        if kept is None:
            return None
        return cls(**{**kept, "others": tuple(OtherFit(**other) for other in kept["others"])})

    def as_json(self) -> JsonObject:
        """Return what the manifest keeps."""
        return {**asdict(self), "others": [asdict(other) for other in self.others]}

    def beside(self, name: str) -> OtherFit:
        """Return one of the other fits."""
        return next(other for other in self.others if other.name == name)

    @property
    def verdict(self) -> Verdict:
        """What the intervals allow to say; one that has 0 in it says nothing."""
        if self.beside(OWN_COLUMNS).high < 0:
            return "harm"
        if all(other.low > 0 for other in self.others):
            return "help"
        return "numbers" if self.beside(OWN_COLUMNS).low > 0 else "nothing"

    @property
    def is_suspicious(self) -> bool:
        """Whether the scorer is so far above both baselines that a leak is likelier than merit."""
        lowest = min(self.beside(OWN_COLUMNS).log_loss, self.beside(NUMBERS).log_loss)
        return self.accuracy >= LEAK_ACCURACY and self.log_loss <= LEAK_SHARE * lowest

    @property
    def degrees_would_help(self) -> bool:
        """Whether the numbers of relationships alone beat the version, which may not hear them."""
        return self.beside(NUMBERS).high < 0

    def sentences(self) -> list[str]:
        """Return it in words: verdict, numbers, and what to look at."""
        told = [VERDICTS[self.verdict], self._describe_losses()]
        if self.is_suspicious:
            told.append(self.describe_leak())
        elif self.degrees_would_help:
            told.append(
                "own columns and numbers of relationships alone do better than the scorer: "
                "[model] degrees = true lets it hear those of nodes of its own label too, under "
                "conditions (docs/mathematics.md, 9a)"
            )
        return told

    def describe_leak(self) -> str:
        """Say why a leak is suspected, and where."""
        lowest = min(self.beside(OWN_COLUMNS).log_loss, self.beside(NUMBERS).log_loss)
        where = f"; most is told by {self.leak}" if self.leak else ""
        return (
            f"CHECK: with the relationships the log loss is {self.log_loss:.3f} and without them "
            f"{lowest:.3f}: the class may stand at a neighbour{where}. If new nodes lack it, mark "
            "the relationship after_evaluation = true, or take the column out"
        )

    def _describe_losses(self) -> str:
        beside = "; ".join(
            f"{other.name} {other.log_loss:.3f} (the version gains {other.gain:+.3f}, 95 % "
            f"interval {other.low:+.3f} to {other.high:+.3f})"
            for other in self.others
        )
        return (
            f"log loss on {self.nodes:,} validation nodes {self.log_loss:.3f}; the same scorer on "
            f"{beside}; {self.fits} more fits took {self.seconds:.1f} s"
        )
