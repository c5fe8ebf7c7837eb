"""What a promise per class means for training: calibration shares, class weights, warnings.

Warnings come before anything is trained: which classes will be in every set because they have too
few labelled nodes, and how many more would change that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ringfence.jobs.config.settings import ConformalSettings, Settings
from ringfence.jobs.project.promise import PromiseTerms, terms_for_training
from ringfence.jobs.project.promise_check import require_group, require_promised_classes
from ringfence.jobs.training.split import Split
from ringfence.models.promise.class_alphas import ClassShare, class_alphas, class_share
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.promise.registry import promise_named
from ringfence.models.scores.registry import SCORES

MAX_NAMED = 8  # classes that are named one by one


@dataclass(frozen=True, slots=True)
class PromisePlan:
    """How the promise shapes training.

    calibration_shares: of classes that give more than the configured share to calibration.
    class_weights: whether rare classes are weighed up in the loss.
    sentences: what a person should know before training.
    """

    calibration_shares: Mapping[str, float] = field(default_factory=dict)
    class_weights: bool = False
    sentences: tuple[str, ...] = ()


def plan_promise(settings: Settings, labelled: Mapping[str, int]) -> PromisePlan:
    """Return what the promise requires; `labelled` counts the labelled nodes of each class."""
    terms = terms_for_training(settings.conformal)
    require_promised_classes(settings.conformal, terms, tuple(labelled))
    require_group(terms, settings.mapping().class_property)
    weighed = wants_class_weights(settings, terms)
    if not terms.promise_kind.per_class:
        return PromisePlan({}, weighed)
    names = tuple(labelled)
    alphas = class_alphas(names, min(settings.conformal.alphas), settings.conformal.classes)
    configured = settings.model.calibration
    shares = {
        name: class_share(labelled[name], float(alpha), configured)
        for name, alpha in zip(names, alphas, strict=True)
    }
    larger = {name: part.share for name, part in shares.items() if part.share > configured}
    sentences = describe_shares(shares, labelled, configured, alphas.tolist())
    return PromisePlan(larger, weighed, (*sentences, *_describe_score(terms)))


def wants_class_weights(settings: Settings, terms: PromiseTerms) -> bool:
    """Whether rare classes are weighed up: as configured, by default under a promise per class."""
    if settings.model.class_weights == "auto":
        return terms.promise_kind.per_class
    return bool(settings.model.class_weights)


def describe_shares(
    shares: Mapping[str, ClassShare],
    labelled: Mapping[str, int],
    configured: float,
    alphas: list[float],
) -> list[str]:
    """Say which classes are in every set, what they lack, and which give more to calibration.

    >>> few = {"mule": class_share(10, 0.1, 0.3), "normal": class_share(900, 0.1, 0.3)}
    >>> describe_shares(few, {"mule": 10, "normal": 900}, 0.3, [0.1, 0.1])
    ['class mule will be in every set: 10 labelled nodes leave about 6 for calibration, and 9 are \
needed to miss at most 10 %; 5 more labelled nodes would do']
    """
    small = [
        f"class {name} will be in every set: {labelled[name]} labelled nodes leave about "
        f"{part.expected:.0f} for calibration, and {part.needed} are needed to miss at most "
        f"{100 * alpha:g} %; {max(1, part.missing)} more labelled nodes would do"
        for (name, part), alpha in zip(shares.items(), alphas, strict=True)
        if part.expected < part.needed
    ]
    larger = [
        f"{name} {part.share:.0%}"
        for name, part in shares.items()
        if part.share > configured and part.expected >= part.needed
    ]
    more = len(small) - MAX_NAMED
    said = small[:MAX_NAMED] + ([f"so will {more} more classes"] if more > 0 else [])
    if larger:
        listed = ", ".join(larger[:MAX_NAMED]) + (" and others" if len(larger) > MAX_NAMED else "")
        said.append(
            f"rare classes give more than {configured:.0%} of their labelled nodes to calibration: "
            f"{listed}"
        )
    return said


def _describe_score(terms: PromiseTerms) -> list[str]:
    """Warn of scores that cost more under a promise per class."""
    score = SCORES.get(terms.score)  # None: the training chooses one
    if score is None or not score.randomised:
        return []
    return [
        f"score {terms.score} makes sets up to 40 % larger than TPS under a promise per class "
        '(measured); without [conformal] score, or with score = "TPS", it is TPS'
    ]


def describe_guarantee(conformal: ConformalSettings, split: Split) -> str:
    """Say what the calibration nodes of a new model promise."""
    of_class = np.bincount(
        split.class_indices[split.calibration], minlength=len(split.classes)
    ).tolist()
    nodes = dict(zip(split.classes, of_class, strict=True))
    promise, options = promise_named(conformal.promise), PromiseOptions(conformal.classes)
    return promise.guarantee(conformal.first_alpha, nodes, options)
