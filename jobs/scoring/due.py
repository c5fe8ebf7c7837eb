"""Due nodes: those without a set and without a class, once the evaluation policy allows.

The policy is fixed when the model is trained; `models.guarantee.evaluation_policy` says why, and
which creation times are due under it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError
from ringfence.connector.mirror import UNKNOWN, Mirror, record_keys_at
from ringfence.connector.neo4j.compare import find_evaluated
from ringfence.connector.store import runs
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.config.settings import ConformalSettings
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.workspace import Workspace
from ringfence.models import hashing
from ringfence.models.guarantee.evaluation_policy import (
    EvaluationPolicy,
    PolicyChanged,
    due_rows,
    require_policy,
)
from ringfence.models.inference import InferenceGraph, neighbour_counts
from ringfence.models.rules.base import Rule

EVALUATION_TIME = "evaluation time"  # purpose of the hashed uniforms of random evaluation times


@dataclass(frozen=True, slots=True)
class DueNodes:
    """Nodes that are evaluated now, that wait (for time or a neighbour), or need no prediction.

    `evaluated_before` counts nodes that got a set under another key than they have now, `reused`
    those of `rows` whose key another evaluated node had, `changed_times` evaluated nodes whose
    creation time is not the sealed one any more.
    """

    rows: NDArray[np.int64]
    waiting: int
    already_known: int
    evaluated_before: int = 0
    reused: int = 0
    changed_times: int = 0


def find_due(
    mirror: Mirror, graph: InferenceGraph, rule: Rule, policy: EvaluationPolicy, seed: int
) -> DueNodes:
    """Return the mirror's rows that are due on the graph as it is now.

    `seed` keys the random times of nodes, where the policy has some.

    EdgeEx weighs nodes by their edges: a node without a neighbour waits for its first one.
    """
    without_set = ~mirror.evaluated
    already_known = without_set & (mirror.classes != UNKNOWN)
    candidates = np.flatnonzero(without_set & (mirror.classes == UNKNOWN))
    waits = np.zeros(len(candidates), np.bool_)
    if rule.needs_neighbours and len(candidates):
        waits = neighbour_counts(graph, candidates) == 0
    if policy.kind != "arrival":  # the graph is complete up to the watermark: that is "now"
        own_times = None
        if policy.is_random:
            own_times = hashing.uniforms(record_keys_at(mirror, candidates), seed, EVALUATION_TIME)
        created = mirror.created_ns[candidates]
        times = due_rows(policy, created, mirror.watermark_ns or 0, own_times)
        waits[times.waiting] = True
    return DueNodes(candidates[~waits], int(waits.sum()), int(already_known.sum()))


def leave_out_evaluated(workspace: Workspace, mirror: Mirror, due: DueNodes) -> DueNodes:
    """Leave out due nodes that the graph shows as evaluated: their key has changed since.

    SQL and mirror know nodes by key alone; a second set for the same node would void the promise.
    The nodes stay due in the mirror, so that every run looks at them, and notes them, again.
    """
    if runs.next_seq(workspace.store, workspace.project) == 1:
        return due
    size, before = workspace.settings.engine.read_rows, np.zeros(len(due.rows), np.bool_)
    for start in range(0, len(due.rows), size):
        keys = mirror.keys.take(due.rows[start : start + size].tolist())
        shown = find_evaluated(workspace.graph, workspace.mapping, workspace.project, keys)
        before[start : start + size] = [key in shown for key in keys]
    return replace(due, rows=due.rows[~before], evaluated_before=int(before.sum()))


def policy_of(settings: ConformalSettings) -> EvaluationPolicy:
    """Return when nodes are evaluated, as `models` takes it."""
    if settings.evaluate == "delay":
        return EvaluationPolicy.after(_delay_ns(settings))
    if settings.evaluate == "random":
        return EvaluationPolicy.within(_delay_ns(settings))
    if settings.evaluate == "date" and settings.date is not None:
        return EvaluationPolicy.at(int(settings.date.timestamp()) * NANOSECONDS)
    return EvaluationPolicy.on_arrival()


def _delay_ns(settings: ConformalSettings) -> int:
    return int(settings.delay_hours * 3600 * NANOSECONDS)


def recorded_policy(settings: ConformalSettings, model: SavedModel) -> EvaluationPolicy:
    """Return the policy that was recorded when the model was trained; another one is refused.

    Without a configured policy the model's own applies, so that a model that comes back into use
    brings its policy along.
    """
    recorded = model.manifest["evaluation"]
    if "kind" in recorded and not settings.model_fields_set & {"evaluate", "delay_hours", "date"}:
        return EvaluationPolicy(recorded["kind"], recorded["ns"])
    policy = policy_of(settings)
    try:
        require_policy(policy, recorded["digest"])
    except PolicyChanged:
        raise ConfigError(
            found=f"[conformal] says: {policy.describe()}; the model was trained under: "
            f"{recorded['words']}",
            needed="the time of evaluation that was fixed before any set was seen",
            next_step="restore [conformal] evaluate, or: ringfence train",
        ) from None
    return policy
