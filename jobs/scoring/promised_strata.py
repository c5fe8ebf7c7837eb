"""Who judges whom in a run: by the rule alone, or inside classes or groups where they are promised.

Groups are those that nodes have in the graph when the run evaluates them; the name of a due node's
group is part of its band, which the record keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.groups import node_groups
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.jobs.project.workspace import Workspace
from ringfence.models.conformal.evaluate import NodeDegrees, Promise
from ringfence.models.conformal.strata import Stratum
from ringfence.models.guarantee.law import smallest_n
from ringfence.models.promise.class_alphas import class_alphas
from ringfence.models.promise.strata import NodeGroups, class_strata, group_name, group_strata

MAX_NAMED = 5  # groups or classes that a note names


@dataclass(frozen=True, slots=True)
class NodesToCompare:
    """Rows of calibration nodes with their classes, and of due nodes, with the degrees of both.

    drift: weights of the calibration nodes by age, where the configuration asks for them.
    """

    mirror: Mirror
    calibration: NDArray[np.int64]
    classes: NDArray[np.int64]
    due: NDArray[np.int64]
    degrees: NodeDegrees
    drift: NDArray[np.float64] | None


def choose_strata(
    workspace: Workspace,
    model: SavedModel,
    terms: PromiseTerms,
    promise: Promise,
    nodes: NodesToCompare,
) -> tuple[list[Stratum] | None, tuple[str, ...]]:
    """Return the strata of a promise per class or group, with notes; None where the rule decides.

    A class or group with too few calibration nodes is in, or gets, every set: the notes say so.
    """
    if terms.promise == "class":
        own = workspace.settings.conformal.classes
        alphas = class_alphas(model.classes, min(promise.alphas), own)
        strata = class_strata(promise, nodes.degrees, nodes.classes, alphas, nodes.drift)
        counts = np.bincount(nodes.classes, minlength=len(model.classes))
        return strata, tuple(describe_small_classes(model.classes, counts, alphas))
    if terms.promise == "group" and terms.group is not None:
        groups = NodeGroups(
            terms.group,
            _groups(workspace, terms.group, nodes.mirror, nodes.calibration),
            _groups(workspace, terms.group, nodes.mirror, nodes.due),
        )
        strata = group_strata(promise, nodes.degrees, groups, nodes.drift)
        return strata, tuple(_describe_groups(groups, min(promise.alphas)))
    return None, ()


def describe_small_classes(
    classes: Sequence[str], counts: NDArray[np.int64], alphas: NDArray[np.float64]
) -> list[str]:
    """Say which classes have too few calibration nodes to be left out of any set.

    >>> describe_small_classes(("mule", "normal"), np.array([12, 90]), np.array([0.05, 0.1]))
    ['class mule has 12 calibration nodes, and 19 are needed to miss at most 5 %: it is in every \
set']
    """
    small = [
        f"class {name} has {count} calibration nodes, and {smallest_n(alpha)} are needed to miss "
        f"at most {100 * alpha:g} %: it is in every set"
        for name, count, alpha in zip(classes, counts.tolist(), alphas.tolist(), strict=True)
        if count < smallest_n(alpha)
    ]
    more = [f"so are {len(small) - MAX_NAMED} more classes"] if len(small) > MAX_NAMED else []
    return small[:MAX_NAMED] + more


def _describe_groups(groups: NodeGroups, alpha: float) -> list[str]:
    """Say which due nodes get full sets: their group has too few calibration nodes, or none."""
    needed, notes = smallest_n(alpha), []
    if unseen := groups.never_seen():
        named = _names(groups.property, list(unseen))
        notes.append(
            f"{sum(unseen.values())} nodes are of a group without any calibration node ({named}): "
            "full sets, until such nodes are labelled and the model is trained anew, or join a "
            "living calibration set"
        )
    counts = {group: groups.calibration.count(group) for group in set(groups.calibration)}
    small = [g for g, count in counts.items() if count < needed and g in set(groups.due)]
    if small:
        nodes = sum(group in small for group in groups.due)
        notes.append(
            f"{nodes} nodes are of a group with fewer than the {needed} calibration nodes that a "
            f"promise of {100 * (1 - alpha):g} % needs ({_names(groups.property, small)}): full "
            "sets"
        )
    return notes


def _names(property_: str, groups: Sequence[str | None]) -> str:
    named = sorted(group_name(property_, group) for group in groups)
    more = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
    return ", ".join(named[:MAX_NAMED]) + more


def _groups(
    workspace: Workspace, property_: str, mirror: Mirror, rows: NDArray[np.int64]
) -> list[str | None]:
    """The group of each row as the graph has it now; None where the node has no such property."""
    keys, size = mirror.keys.take(rows.tolist()), workspace.settings.engine.read_rows
    found: dict[str, str] = {}
    for start in range(0, len(keys), size):
        part = keys[start : start + size]
        found |= {
            group.node_key: group.value
            for group in node_groups(workspace.graph, workspace.mapping, [property_], part)
        }
    return [found.get(key) for key in keys]
