"""The labelled nodes by role: those to train on, to stop by, to calibrate with, to compare on.

The holdout is drawn first (`jobs.project.holdout`); the other roles divide the rest. A node's role
follows from its key and the project's seed alone, so that it keeps it when the graph grows. Under
a promise per class a rare class gives a larger share of its labelled nodes to calibration, which
its promise rests on; its nodes' roles then move with their number, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ModelError
from ringfence.connector.mirror import UNKNOWN, Mirror, record_keys_at
from ringfence.connector.records import Member, Role
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.project.holdout import MIN_NODES, Holdout
from ringfence.models import hashing

Ints = NDArray[np.int64]
REASONS_NAMED = 3
NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Split:
    """Rows of the mirror by role, each role in the order of its keys.

    `classes` are the names in the order of the network's outputs, `class_indices` [nodes] where
    each node's class stands in it; UNKNOWN (-1) where it is not known.
    """

    classes: tuple[str, ...]
    class_indices: Ints
    train: Ints
    validation: Ints
    calibration: Ints
    holdout: Ints = field(default_factory=lambda: NO_ROWS)

    @property
    def roles(self) -> dict[Role, Ints]:
        """The rows by the name of their role."""
        return {
            "train": self.train,
            "validation": self.validation,
            "calibration": self.calibration,
            "holdout": self.holdout,
        }


@dataclass(frozen=True, slots=True)
class DrawnHoldout:
    """The labelled nodes of the holdout; without one, `sentence` says why there is none."""

    holdout: Holdout | None
    rows: Ints
    sentence: str = ""


def draw_holdout(mirror: Mirror, holdout: Holdout) -> DrawnHoldout:
    """Draw the holdout among the labelled nodes; none where it would be too small to compare on."""
    rows = np.flatnonzero(mirror.classes != UNKNOWN)
    if holdout.share == 0:
        return DrawnHoldout(None, NO_ROWS)
    drawn = rows[holdout.contains(mirror.keys.take(rows.tolist()))]
    if len(drawn) >= MIN_NODES:
        return DrawnHoldout(holdout, drawn)
    return DrawnHoldout(
        None,
        NO_ROWS,
        f"no holdout: {len(rows):,} labelled nodes leave {len(drawn)} for it and {MIN_NODES} are "
        f"needed, so this version is not compared with others; about "
        f"{math.ceil(MIN_NODES / holdout.share):,} labelled nodes would do",
    )


def split_labelled(
    mirror: Mirror,
    settings: ModelSettings,
    calibration_shares: Mapping[str, float] | None = None,
    holdout: Ints = NO_ROWS,
) -> Split:
    """Split the labelled nodes into roles by the configured shares, those of the holdout apart.

    `calibration_shares` are those of classes that give more of their nodes to calibration; training
    and validation divide the rest as they are configured.

    The mirror numbers nodes as they were read; sums of floats depend on the order of their terms,
    so training in that numbering would give other weights for the same graph: keys give the order.
    """
    refuse_lost_nodes(mirror, settings.max_unusable)
    classes = _class_order(mirror)
    indices = _class_indices(mirror, classes)
    rows = np.flatnonzero(indices != UNKNOWN)
    keys = mirror.keys.take(rows.tolist())
    order = sorted(range(len(keys)), key=keys.__getitem__)
    rows, keys = rows[order], [keys[position] for position in order]
    of_class = [classes[index] for index in indices[rows].tolist()]
    masks = _role_masks(keys, of_class, settings, calibration_shares or {})
    apart = np.isin(rows, holdout)
    masks = {role: mask & ~apart for role, mask in masks.items()}
    for role, mask in masks.items():
        if not mask.any():
            raise ModelError(
                found=f"{int((~apart).sum())} labelled nodes leave none for {role}",
                needed="at least one node in each of train, validation and calibration",
                next_step="label more nodes, or change the shares in [model]",
            )
    roles = {role: rows[mask] for role, mask in masks.items()}
    return Split(tuple(classes), indices, **roles, holdout=rows[apart])


def train_instead(mirror: Mirror, split: Split, keys: Container[str]) -> Split:
    """Return the split with some of its calibration nodes, named by their keys, among train."""
    calibration_keys = record_keys_at(mirror, split.calibration)
    moved = np.array([key in keys for key in calibration_keys], np.bool_)
    if not moved.any():
        return split
    train = np.concatenate([split.train, split.calibration[moved]])
    names = mirror.keys.take(train.tolist())
    order = sorted(range(len(names)), key=names.__getitem__)
    return replace(split, train=train[order], calibration=split.calibration[~moved])


def stop_by_latest(mirror: Mirror, split: Split) -> Split:
    """Return the split with the latest of train and validation nodes as validation nodes.

    There are as many as before, each role in the order of its keys; of nodes of one time those
    that were drawn for validation come last, so that a graph without an order of arrival keeps its
    split. A class whose train nodes would all become validation nodes could not be learnt: the
    split then stays as it was drawn. Calibration and holdout are never touched.
    """
    learnt = np.concatenate([split.train, split.validation])
    drawn = np.arange(len(learnt)) >= len(split.train)
    keys = mirror.keys.take(learnt.tolist())
    by_key = sorted(range(len(keys)), key=keys.__getitem__)
    learnt, drawn = learnt[by_key], drawn[by_key]
    order = np.lexsort((drawn, mirror.created_ns[learnt]))
    late = np.zeros(len(learnt), np.bool_)
    late[order[len(split.train) :]] = True
    classes = split.class_indices
    if set(classes[split.train].tolist()) - set(classes[learnt[~late]].tolist()):
        return split
    return replace(split, train=learnt[~late], validation=learnt[late])


def same_validation(first: Split, other: Split) -> bool:
    """Whether training ends by the same nodes in both."""
    return np.array_equal(np.sort(first.validation), np.sort(other.validation))


def count_labelled(mirror: Mirror, holdout: Ints = NO_ROWS) -> dict[str, int]:
    """Return how many nodes outside the holdout have each class, by its name."""
    outside = mirror.classes != UNKNOWN
    outside[holdout] = False
    seen, counts = np.unique(mirror.classes[outside], return_counts=True)
    names = [mirror.class_names[index] for index in seen.tolist()]
    return dict(sorted(zip(names, counts.tolist(), strict=True)))


def _role_masks(
    keys: list[str], classes: list[str], settings: ModelSettings, class_shares: Mapping[str, float]
) -> dict[str, NDArray[np.bool_]]:
    """Return a mask per role; classes in `class_shares` have their own share of calibration."""
    masks = hashing.split(keys, settings.seed, _shares(settings, settings.calibration))
    for name, share in class_shares.items():
        mine = np.array([class_name == name for class_name in classes], np.bool_)
        others = hashing.split(keys, settings.seed, _shares(settings, share))
        masks = {role: np.where(mine, others[role], mask) for role, mask in masks.items()}
    return masks


def _shares(settings: ModelSettings, calibration: float) -> dict[str, float]:
    """Shares of the roles, as they are configured where calibration has its configured share."""
    if calibration == settings.calibration:
        train, validation = settings.train, settings.validation
    else:
        learnt = settings.train + settings.validation
        train = round((1 - calibration) * settings.train / learnt, 12)
        validation = round(1 - calibration - train, 12)
    return {"train": train, "validation": validation, "calibration": calibration}


def recorded_shares(
    settings: ModelSettings, class_shares: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Return the shares of the roles by class, "" for every class without its own.

    A run divides nodes by them whose class becomes known after the training.
    """
    shares = {"": _shares(settings, settings.calibration)}
    return shares | {name: _shares(settings, share) for name, share in class_shares.items()}


def refuse_lost_nodes(mirror: Mirror, most: float) -> None:
    """Refuse to train where more than a share of the nodes fell out, and say why they did."""
    lost, all_ = len(mirror.rejected), mirror.size + len(mirror.rejected)
    if lost <= most * all_:
        return
    reasons = Counter(bad.reason for bad in mirror.rejected.values()).most_common(REASONS_NAMED)
    raise ModelError(
        found=f"{lost} of {all_} nodes can't be used: "
        + "; ".join(f"{count} because {reason}" for reason, count in reasons),
        needed=f"at most {most:.0%} of them ([model] max_unusable): a model of the rest would "
        "speak of other nodes than those that arrive",
        next_step="ringfence doctor   (says what to correct)",
    )


def list_members(mirror: Mirror, split: Split) -> list[Member]:
    """Return the labelled nodes with their roles, as the store takes them."""
    return [
        Member(key, role, int(split.class_indices[row]), int(mirror.created_ns[row]))
        for role, rows in split.roles.items()
        for key, row in zip(record_keys_at(mirror, rows), rows.tolist(), strict=True)
    ]


def _class_order(mirror: Mirror) -> list[str]:
    seen = np.unique(mirror.classes[mirror.classes != UNKNOWN])
    classes = sorted(mirror.class_names[index] for index in seen)
    if len(classes) < 2:
        known_classes = (
            f"only the class {classes[0]!r}" if classes else "no node with a known class"
        )
        raise ModelError(
            found=f"{known_classes} among {mirror.size} nodes",
            needed="nodes of at least two classes to learn from",
            next_step="check [graph] class_property, then: ringfence doctor",
        )
    return classes


def _class_indices(mirror: Mirror, classes: list[str]) -> Ints:
    """Classes as the network numbers them [nodes]; -1 where unknown."""
    order = np.array([classes.index(name) for name in mirror.class_names] + [UNKNOWN])
    return np.asarray(order[mirror.classes], np.int64)
