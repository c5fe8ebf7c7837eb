"""MAPIE and TorchCP on the nodes of `efficiency`: their sets, all nodes compared together.

Neither can calibrate within bands of degree or on a graph that grows; both are given the network's
probabilities of calibration and judged nodes on the same graph. TorchCP is imported without its
package's __init__, which pulls in language models (as in `benchmarks.conformal`).
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.conformal import bare_packages
from benchmarks.measuring import ROOT

sys.path += [str(ROOT / ".venv" / "bench")]  # where `make bench-conformal` puts TorchCP

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def sets_of_others(known: Floats, classes: Ints, due: Floats, alpha: float) -> dict[str, Bools]:
    """Return the sets of the due nodes [m, classes] by each library and score that is there."""
    found: dict[str, Bools] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found |= _mapie(known, classes, due, alpha)
        found |= _torchcp(known, classes, due, alpha)
    return found


def _mapie(known: Floats, classes: Ints, due: Floats, alpha: float) -> dict[str, Bools]:
    try:
        from mapie.classification import SplitConformalClassifier
        from sklearn.base import BaseEstimator, ClassifierMixin
    except ImportError:
        return {}

    class Passthrough(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        """A fitted classifier whose features are its probabilities."""

        classes_ = np.arange(known.shape[1])

        def fit(self, _x: Any, _y: Any) -> Any:
            return self

        def predict_proba(self, x: Any) -> Any:
            return x

        def predict(self, x: Any) -> Any:
            return np.argmax(x, axis=1)

        def __sklearn_is_fitted__(self) -> bool:
            return True

    found = {}
    for score, options in (("lac", {}), ("aps", {"include_last_label": "randomized"})):
        judge = SplitConformalClassifier(Passthrough(), 1 - alpha, score, random_state=0)
        judge.conformalize(known, classes)
        sets = judge.predict_set(due, conformity_score_params=options)[1][:, :, 0]
        found[f"MAPIE, {'APS' if score == 'aps' else 'TPS'}"] = np.asarray(sets, bool)
    return found


def _torchcp(known: Floats, classes: Ints, due: Floats, alpha: float) -> dict[str, Bools]:
    if "torchcp" not in sys.modules and not bare_packages("torchcp", "torchcp.classification"):
        return {}
    from torchcp.classification.predictor import SplitPredictor
    from torchcp.classification.score import APS, LAC, RAPS

    scores = {
        "APS": APS(score_type="identity"),
        "TPS": LAC(score_type="identity"),
        "RAPS": RAPS(score_type="identity", penalty=0.01, kreg=1),
    }
    found = {}
    for name, score in scores.items():
        judge = SplitPredictor(score, torch.nn.Identity(), alpha=alpha, device=torch.device("cpu"))
        judge.calculate_threshold(torch.from_numpy(known), torch.from_numpy(classes))
        sets = judge.predict_with_logits(torch.from_numpy(due))
        found[f"TorchCP, {name}"] = np.asarray(sets, bool)
    return found
