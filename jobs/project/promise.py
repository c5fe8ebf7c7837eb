"""The promise in force: the configured settings, and the model's own where none is configured.

Rule, score and calibration belong to a model: its manifest has those that it was trained with, and
new defaults hold for new models only. A setting that stands in the configuration counts for every
model. Manifests from before promises were recorded keep the defaults of that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.store.engine import dumps
from ringfence.jobs.config.conformal import ConformalSettings
from ringfence.jobs.config.names import CHOSEN_AT_TRAINING
from ringfence.models.calibration.adaptive_level import THEN
from ringfence.models.calibration.sets.base import CalibrationSetKind
from ringfence.models.calibration.sets.frozen_set import FROZEN
from ringfence.models.calibration.sets.registry import CALIBRATION_SETS, calibration_set_named
from ringfence.models.promise.base import PromiseKind
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.promise.registry import PROMISES, promise_named
from ringfence.models.rules.base import Rule
from ringfence.models.rules.registry import rule_named
from ringfence.models.scores.registry import REFERENCE, SCORES, score_named

PROMISE_KEY = "promise"
"""Of a model's manifest: its terms."""

WAIT_OF_RUNS, WAIT_OF_TIME = "90 runs", "1 year"
"""How long a run waits for a class that was never seen, in versions trained before and now."""

SHAPES_SETS = {"drift_half_life_days", "edge_test_weight", "nonempty", "classes"}
"""Settings that shape sets and belong to no model."""


@dataclass(frozen=True, slots=True)
class PromiseTerms:
    """What is promised and how it is calibrated; the meaning of each is in `[conformal]`."""

    rule: str
    score: str
    diffusion: float
    penalty: float
    k_reg: int
    promise: str
    calibration_set: str
    window_nodes: int
    adapt: bool
    adapt_step: float
    weights: str
    group: str | None = None
    adapt_rule: str = THEN
    longest_wait: str = WAIT_OF_RUNS

    def score_options(self) -> dict[str, float | int]:
        """Return the settings that the score takes besides, by name."""
        return {name: getattr(self, name) for name in score_named(self.score).settings}

    @property
    def rule_kind(self) -> Rule:
        """The rule: how nodes are compared."""
        return rule_named(self.rule)

    @property
    def promise_kind(self) -> PromiseKind:
        """The promise: for which nodes 1 - alpha holds."""
        return promise_named(self.promise)

    @property
    def calibration_kind(self) -> CalibrationSetKind:
        """The calibration set: which nodes calibrate later runs."""
        return calibration_set_named(self.calibration_set)

    @property
    def uses_recent_labels(self) -> bool:
        """Whether nodes that become known join the calibration, or move the level."""
        return self.calibration_kind.uses_recent_labels or self.adapt

    @property
    def settles_by_age(self) -> bool:
        """Whether runs settle by one delay for all classes, as in versions trained before."""
        return self.adapt_rule == THEN

    @property
    def waits_by_runs(self) -> bool:
        """Whether a class that was never seen is waited for 90 runs, however long these take."""
        return self.longest_wait == WAIT_OF_RUNS

    def promise_options(self, settings: ConformalSettings) -> PromiseOptions:
        """Return what the promise takes besides: alphas of single classes, groups."""
        return PromiseOptions(settings.classes, self.group)

    def as_manifest(self) -> JsonObject:
        """Return what a model's manifest keeps."""
        return asdict(self)


FIRST_TERMS = PromiseTerms(
    rule="NodeEx",
    score="APS",
    diffusion=0.5,
    penalty=0.01,
    k_reg=1,
    promise="marginal",
    calibration_set="frozen",
    window_nodes=5_000,
    adapt=False,
    adapt_step=0.05,
    weights="none",
)
"""What models were trained with before manifests recorded it."""


LONGEST_WAIT = "longest_wait"  # of a version, and no setting
_SETTINGS = FIRST_TERMS.as_manifest().keys() - {LONGEST_WAIT}


def terms_for_training(
    settings: ConformalSettings, chosen_score: str | None = None
) -> PromiseTerms:
    """Return the promise of a new model.

    `chosen_score` is what `score = "auto"` chose; until then that setting stands as "auto".
    """
    values = {name: getattr(settings, name) for name in _SETTINGS} | {LONGEST_WAIT: WAIT_OF_TIME}
    given = settings.model_fields_set
    if "calibration_set" not in given and not rule_named(settings.rule).allows_recent_labels:
        values["calibration_set"] = FROZEN.name
    if "adapt" not in given and _is_frozen(values["calibration_set"]):
        values["adapt"] = False  # the paper's theorem, one setting away
    score = settings.score or default_score(settings.rule, settings.promise)
    return PromiseTerms(**values | {"score": chosen_score or score})


def default_score(rule: str, promise: str) -> str:
    """Return the score of a new model whose configuration names none.

    >>> default_score("auto", "marginal"), default_score("auto", "class")
    ('DAPS', 'TPS')
    >>> default_score("NodeEx", "marginal")
    'APS'
    """
    return promise_named(promise).score if rule_named(rule).uses_bands else REFERENCE.name


def terms_in_force(settings: ConformalSettings, manifest: Mapping[str, Any]) -> PromiseTerms:
    """Return the promise of a trained model: settings that are given, else the model's own.

    >>> terms_in_force(ConformalSettings(), {}).rule
    'NodeEx'
    >>> terms_in_force(ConformalSettings(rule="EdgeEx"), {}).rule
    'EdgeEx'
    """
    kept = FIRST_TERMS.as_manifest() | dict(manifest.get(PROMISE_KEY, {}))
    given = {
        name: getattr(settings, name)
        for name in kept
        if name in settings.model_fields_set and getattr(settings, name) is not None
    }
    if "calibration_set" in given and _is_frozen(given["calibration_set"]):
        given.setdefault("adapt", False)
    if given.get("score") == CHOSEN_AT_TRAINING:  # chosen at training, from then on the model's own
        del given["score"]
    return PromiseTerms(**kept | given)


def differences_from_new(settings: ConformalSettings, manifest: Mapping[str, Any]) -> list[str]:
    """Say in what the promise of a trained model is not that of one trained now.

    >>> settings = ConformalSettings(rule="NodeEx", score="APS", calibration_set="frozen")
    >>> differences_from_new(settings, {})
    []
    >>> differences_from_new(ConformalSettings(alpha=0.2), {})[0]
    'rule: this model keeps NodeEx; one trained now has auto'
    """
    now, new = terms_in_force(settings, manifest), terms_for_training(settings)
    if new.score == CHOSEN_AT_TRAINING:  # not decided before it is trained
        new = replace(new, score=now.score)
    return [
        f"{name}: this model keeps {was}; one trained now has {will_be}"
        for name, was, will_be in _differences(now, new)
    ]


def describe_changes(
    settings: ConformalSettings, before: Mapping[str, Any], new: PromiseTerms
) -> list[str]:
    """Say in what a new model's promise is not that of the model in use.

    >>> describe_changes(ConformalSettings(), {}, replace(FIRST_TERMS, rule="auto"))
    ['rule: auto, with the model in use NodeEx']
    """
    return [
        f"{name}: {is_}, with the model in use {was}"
        for name, was, is_ in _differences(terms_in_force(settings, before), new)
    ]


def _differences(before: PromiseTerms, after: PromiseTerms) -> list[tuple[str, Any, Any]]:
    was, is_ = before.as_manifest(), after.as_manifest()
    return [
        (name, was[name], is_[name])
        for name in was
        if was[name] != is_[name] and _counts(name, before, after)
    ]


def options_of(settings: ConformalSettings, terms: PromiseTerms) -> str:
    """Return the other settings that shape sets, unless they have their first default.

    A setting that comes later changes nothing for the runs before it: its first value is left out.

    >>> settings = ConformalSettings(alpha=0.2, drift_half_life_days=30.0)
    >>> options_of(settings, terms_in_force(settings, {}))
    '{"drift_half_life_days":30.0}'
    """
    given = settings.model_dump(mode="json", include=SHAPES_SETS, exclude_defaults=True)
    first = FIRST_TERMS.as_manifest()
    kept = {
        name: value
        for name, value in terms.as_manifest().items()
        if name not in {"rule", "score"} and value != first[name] and _counts(name, terms)
    }
    return dumps(given | kept)


def require_bands_for_score(settings: ConformalSettings, terms: PromiseTerms) -> None:
    """Refuse a score that needs bands of degree under a rule without them, unless it is allowed."""
    score = SCORES.get(terms.score)  # None: the training chooses among those that keep the promise
    if terms.rule_kind.uses_bands or score is None or score.safe_without_bands:
        return
    if settings.score_without_bands:
        return
    raise ConfigError(
        found=f'[conformal] score = "{terms.score}" with rule = "{terms.rule}"',
        needed='rule = "auto", or score = "APS": without bands of degree this score falls several '
        "points short of the promise where edges arrive in random order",
        next_step="change [conformal] rule or score; or, to have it all the same: "
        "score_without_bands = true",
    )


def _counts(name: str, *terms: PromiseTerms) -> bool:
    """Whether a setting means anything under one of the terms."""
    if name == "adapt_step":
        return any(each.adapt for each in terms)
    if name == "adapt_rule":
        return any(each.uses_recent_labels for each in terms)
    if name == LONGEST_WAIT:
        return any(each.uses_recent_labels and not each.settles_by_age for each in terms)
    if any(name in kind.settings for kind in PROMISES.values()):
        return any(name in each.promise_kind.settings for each in terms)
    if any(name in kind.settings for kind in CALIBRATION_SETS.values()):
        return any(name in each.calibration_kind.settings for each in terms)
    if any(name in score.settings for score in SCORES.values()):
        used = [SCORES[each.score].settings for each in terms if each.score in SCORES]
        return any(name in settings for settings in used)
    return True


def _is_frozen(calibration_set: str) -> bool:
    return not calibration_set_named(calibration_set).uses_recent_labels
