"""Refuses ways to calibrate that would break the configured promise, with the reason.

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
    """Refuse a promise that the model can't keep; `classified` is the class property."""
    require_calibration(settings, terms)
    require_promised_classes(settings, terms, manifest["classes"])
    require_calibration_of_all(terms, manifest)
    require_group(terms, classified)


def require_calibration(settings: ConformalSettings, terms: PromiseTerms) -> None:
    """Refuse a half-life on a frozen set, and weights of one degree each with nodes that join."""
    joins = terms.calibration_kind.uses_recent_labels
    if settings.drift_half_life_days is not None and not joins:
        raise ConfigError(
            found=f"[conformal] drift_half_life_days = {settings.drift_half_life_days:g} with a "
            "frozen calibration set",
            needed="calibration nodes that get younger: on a frozen set all weights shrink "
            "together, and every set is full after about seven half-lives (1,000 nodes)",
            next_step='set [conformal] calibration_set = "growing" or "window"; or remove the '
            "half-life",
        )
    if joins and not terms.rule_kind.allows_recent_labels:
        conflict = f'rule = "{terms.rule}" with calibration_set = "{terms.calibration_set}"'
        raise ConfigError(
            found=f"[conformal] {conflict}",
            needed="weights that fit how nodes were sampled: 1 / degree is right for ends of "
            "sampled edges, and nodes join the calibration as they are labelled",
            next_step='set [conformal] rule = "auto", or calibration_set = "frozen"',
        )
    if terms.weights == "shift" and not terms.rule_kind.allows_shift_weights:
        raise ConfigError(
            found=f'[conformal] weights = "shift" with rule = "{terms.rule}"',
            needed="one kind of weights: both are made from degrees, and 1 / degree aims at "
            "another choice of nodes",
            next_step='set [conformal] rule = "auto", or weights = "none"',
        )
    if terms.weights == "shift" and terms.promise_kind.divides_nodes:
        raise ConfigError(
            found=f'[conformal] weights = "shift" with promise = "{terms.promise}"',
            needed="a promise for all nodes together: weights by degree take the place of the "
            "strata that classes and groups are calibrated in",
            next_step='set [conformal] weights = "none", or promise = "marginal"',
        )


def calibration_warnings(terms: PromiseTerms) -> list[tuple[str, str]]:
    """Return warnings on ways to calibrate that promise less than possible, and what to do.

    >>> from ringfence.jobs.project.promise import FIRST_TERMS
    >>> calibration_warnings(FIRST_TERMS)
    []
    """
    if terms.adapt and not terms.calibration_kind.uses_recent_labels:
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
    """Refuse alphas of classes that the model does not have, and alphas that no promise uses."""
    if not settings.classes:
        return
    if not terms.promise_kind.per_class:
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
    if terms.promise_kind.per_class or not manifest.get("calibration_shares"):
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
    if terms.promise_kind.needs_group and terms.group == class_property:
        raise ConfigError(
            found=f'[conformal] group = "{terms.group}", which is [graph] class_property too',
            needed="a property that nodes have before their class is known",
            next_step='set another [conformal] group; for a promise per class: promise = "class"',
        )
