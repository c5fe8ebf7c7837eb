"""Ways to calibrate that would break the promise they are asked for: refused, with the reason.

Promises that can't be read (of an unknown class, of groups that are the classes) are refused too.

Each was measured; docs/mathematics.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.conformal import ConformalSettings
from ringfence.jobs.project.promise import PromiseTerms


def require_promise(
    settings: ConformalSettings, terms: PromiseTerms, manifest: Mapping[str, Any], classified: str
) -> None:
    """Refuse what a model can't promise as it is configured; `classified` is the class property."""
    require_calibration(settings, terms)
    require_promised_classes(settings, terms, manifest["classes"])
    require_calibration_of_all(terms, manifest)
    require_group(terms, classified)


def require_calibration(settings: ConformalSettings, terms: PromiseTerms) -> None:
    """Refuse a half-life on a frozen set, and weights of one degree each with nodes that join."""
    if settings.drift_half_life_days is not None and terms.calibration_set == "frozen":
        raise ConfigError(
            found=f"[conformal] drift_half_life_days = {settings.drift_half_life_days:g} with a "
            "frozen calibration set",
            needed="calibration nodes that get younger: on a frozen set all weights shrink "
            "together, and every set is full after about seven half-lives (1,000 nodes)",
            next_step='set [conformal] calibration_set = "growing" or "window"; or remove the '
            "half-life",
        )
    if terms.rule == "EdgeEx" and terms.calibration_set != "frozen":
        raise ConfigError(
            found=f'[conformal] rule = "EdgeEx" with calibration_set = "{terms.calibration_set}"',
            needed="weights that fit how nodes were sampled: 1 / degree is right for ends of "
            "sampled edges, and nodes join the calibration as they are labelled",
            next_step='set [conformal] rule = "auto", or calibration_set = "frozen"',
        )
    if terms.rule == "EdgeEx" and terms.weights == "shift":
        raise ConfigError(
            found='[conformal] weights = "shift" with rule = "EdgeEx"',
            needed="one kind of weights: both are made from degrees, and 1 / degree aims at "
            "another choice of nodes",
            next_step='set [conformal] rule = "auto", or weights = "none"',
        )
    if terms.weights == "shift" and terms.promise != "marginal":
        raise ConfigError(
            found=f'[conformal] weights = "shift" with promise = "{terms.promise}"',
            needed="a promise for all nodes together: weights by degree take the place of the "
            "strata that classes and groups are judged in",
            next_step='set [conformal] weights = "none", or promise = "marginal"',
        )


def calibration_warnings(terms: PromiseTerms) -> list[tuple[str, str]]:
    """Return ways to calibrate that keep less than one could have: what is so, and what to do.

    >>> from ringfence.jobs.project.promise import FIRST_TERMS
    >>> calibration_warnings(FIRST_TERMS)
    []
    """
    if terms.calibration_set == "frozen" and terms.adapt:
        return [
            (
                "an adaptive level on a frozen calibration set follows change more slowly than on "
                "a living one, and has no theorem about single nodes either",
                'set [conformal] calibration_set = "window"; or adapt = false',
            )
        ]
    return []


def require_promised_classes(
    settings: ConformalSettings, terms: PromiseTerms, classes: Sequence[str]
) -> None:
    """Refuse an alpha of a class that the model does not have, and alphas that nothing asks for."""
    if not settings.classes:
        return
    if terms.promise != "class":
        raise ConfigError(
            found=f'[conformal.classes] with the promise "{terms.promise}", which the model keeps',
            needed='promise = "class" in [conformal]: it is what alphas of single classes belong '
            "to",
            next_step='set [conformal] promise = "class", or remove [conformal.classes]',
        )
    if unknown := sorted(set(settings.classes) - set(classes)):
        raise ConfigError(
            found=f"[conformal.classes] names {', '.join(map(repr, unknown))}, which is no class "
            "of the model",
            needed=f"some of its classes: {', '.join(map(repr, classes))}",
            next_step="correct the name in [conformal.classes]; if the class is new in the graph: "
            "ringfence train",
        )


def require_calibration_of_all(terms: PromiseTerms, manifest: Mapping[str, Any]) -> None:
    """Refuse a promise for all nodes together where rare classes gave more nodes to calibration."""
    if terms.promise == "class" or not manifest.get("calibration_shares"):
        return
    raise ConfigError(
        found=f'[conformal] promise = "{terms.promise}" with a model that was trained for a '
        "promise per class: rare classes ("
        f"{', '.join(manifest['calibration_shares'])}) have a larger share of its calibration "
        "nodes than of all nodes",
        needed="calibration nodes that are like the nodes to evaluate",
        next_step='ringfence train, then promote what it trained   (or keep promise = "class")',
    )


def require_group(terms: PromiseTerms, class_property: str) -> None:
    """Refuse groups that are the classes: a node's own class is not known when it is evaluated."""
    if terms.promise == "group" and terms.group == class_property:
        raise ConfigError(
            found=f'[conformal] group = "{terms.group}", which is [graph] class_property too',
            needed="a property that nodes have before their class is known",
            next_step='set another [conformal] group; for a promise per class: promise = "class"',
        )
