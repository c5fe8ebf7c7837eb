"""The promise in force: what the configuration says, and what the model keeps where it is silent.

Rule, score and calibration belong to a model: its manifest has those that it was trained with, and
new defaults hold for new models only. A setting that stands in the configuration counts for every
model. Manifests from before promises were recorded keep the defaults of that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import dumps
from ringfence.jobs.config.conformal import ConformalSettings

MANIFEST_KEY = "promise"
SCORES_FOR_BANDS = ("TPS", "DAPS", "DTPS")
"""Scores that were measured to fall below the promise where nodes are not compared in bands."""

SHAPES_SETS = {"drift_half_life_days", "edge_test_weight", "nonempty", "classes"}
"""Settings that shape sets and belong to no model."""

OPTIONS = {
    "DAPS": ("diffusion",),
    "DTPS": ("diffusion",),
    "RAPS": ("penalty", "k_reg"),
}
"""Settings that a score takes besides."""


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

    def score_options(self) -> dict[str, float | int]:
        """Return the settings that the score takes besides, by name."""
        return {name: getattr(self, name) for name in OPTIONS.get(self.score, ())}

    def as_manifest(self) -> dict[str, Any]:
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


def terms_for_training(
    settings: ConformalSettings, chosen_score: str | None = None
) -> PromiseTerms:
    """Return the promise of a new model.

    `chosen_score` is what `score = "auto"` chose; until then that setting stands as "auto".
    """
    values = {name: getattr(settings, name) for name in FIRST_TERMS.as_manifest()}
    if settings.rule == "EdgeEx" and "calibration_set" not in settings.model_fields_set:
        values["calibration_set"] = "frozen"  # 1 / degree is wrong for nodes that join
    if values["calibration_set"] == "frozen" and "adapt" not in settings.model_fields_set:
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
    if rule != "auto":
        return "APS"
    return "TPS" if promise == "class" else "DAPS"


def terms_in_force(settings: ConformalSettings, manifest: Mapping[str, Any]) -> PromiseTerms:
    """Return the promise of a trained model: settings that are given, else the model's own.

    >>> terms_in_force(ConformalSettings(), {}).rule
    'NodeEx'
    >>> terms_in_force(ConformalSettings(rule="EdgeEx"), {}).rule
    'EdgeEx'
    """
    kept = FIRST_TERMS.as_manifest() | dict(manifest.get(MANIFEST_KEY, {}))
    given = {
        name: getattr(settings, name)
        for name in kept
        if name in settings.model_fields_set and getattr(settings, name) is not None
    }
    if given.get("calibration_set") == "frozen":
        given.setdefault("adapt", False)
    if given.get("score") == "auto":  # chosen at training, from then on the model's own
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
    if new.score == "auto":  # not decided before it is trained
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


def _differences(one: PromiseTerms, other: PromiseTerms) -> list[tuple[str, Any, Any]]:
    parts = one.as_manifest(), other.as_manifest()
    return [
        (name, parts[0][name], parts[1][name])
        for name in parts[0]
        if parts[0][name] != parts[1][name] and _counts(name, one, other)
    ]


def options_of(settings: ConformalSettings, terms: PromiseTerms) -> str:
    """Return what shapes sets beside rule, score and alpha, where it is not as it always was.

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
    """Refuse a score that needs bands of degree under a rule without them, unless asked to."""
    if terms.rule == "auto" or terms.score not in SCORES_FOR_BANDS or settings.score_without_bands:
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
    if name == "window_nodes":
        return any(one.calibration_set == "window" for one in terms)
    if name == "adapt_step":
        return any(one.adapt for one in terms)
    if name == "group":
        return any(one.promise == "group" for one in terms)
    if name in {"diffusion", "penalty", "k_reg"}:
        return any(name in OPTIONS.get(one.score, ()) for one in terms)
    return True
