"""Counterfactuals for the mean of a network and trees: both answer, and their means are taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.explanation.counterfactual_query import Question
from ringfence.models.explanation.counterfactuals import Counterfactual
from ringfence.models.inference import InferenceGraph
from ringfence.models.trees.blend import blend_logits

__all__ = ["BlendWhatIf"]


@dataclass(frozen=True, slots=True)
class BlendWhatIf:
    """Answers many questions about one graph, exactly as a pass would compute them."""

    network: Counterfactual
    trees: Counterfactual

    def ask(self, question: Question | None) -> InferenceGraph:
        """Apply a question to the graph of both, undo it for None; return what scores read."""
        self.network.ask(question)
        return self.trees.ask(question)

    def outputs_now(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the outputs at ``rows`` [m, classes] on the graph of the last `ask`."""
        return blend_logits(self.network.outputs_now(rows), self.trees.outputs_now(rows))
