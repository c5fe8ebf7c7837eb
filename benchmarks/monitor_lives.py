"""The exchangeability monitor over a life whose classes come late (`benchmarks.verdicts`).

Which labels it compares, and when, is decided by the function that runs use
(`jobs.scoring.monitor_order`). `waits = False` compares labels as they come, which is what the
monitor did before.
"""

from __future__ import annotations

import numpy as np

from benchmarks.verdict_lives import Floats, Ints, Played
from ringfence.jobs.scoring.monitor import MAX_REFERENCE_NODES
from ringfence.jobs.scoring.monitor_order import KnownTimes, choose_new
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor
from ringfence.models.exchangeability.smoothed_pvalues import reference_sample, smoothed_p_values

DELTA = 0.01


def ever_alarms(played: Played, waits: bool = True) -> bool:
    """Return whether the monitor raised an alarm at some run of a life."""
    monitor, mark, held = ExchangeabilityMonitor.start(), 0, {}
    for now in range(1, played.world.runs):
        of_run, known_at, scores = _known(played, now)
        early = {seq - 1 for seq in played.unsettled(now)} if waits else set()
        step = choose_new(KnownTimes(of_run, known_at), mark, held, early)
        mark, held = int(known_at.max(initial=mark)), step.held
        if not step.new.any():
            continue
        draw = np.random.default_rng([played.seed, now])
        reference = np.concatenate([played.trained, scores[step.reference]])
        part = reference_sample(len(reference), MAX_REFERENCE_NODES, seed=monitor.labels)
        order = np.lexsort((draw.random(int(step.new.sum())), step.released_ns[step.new]))
        u = 1.0 - draw.random(len(order))
        monitor = monitor.after(smoothed_p_values(reference[part], scores[step.new][order], u))
        if monitor.alarm(DELTA):
            return True
    return False


def _known(played: Played, now: int) -> tuple[Ints, Ints, Floats]:
    """Run, time and score of the nodes that are known when a run is made."""
    masks = [known <= now for known in played.known[:now]]
    of_run = np.repeat(np.arange(now), [int(mask.sum()) for mask in masks])
    known_at = np.concatenate([k[m] for k, m in zip(played.known, masks, strict=False)])
    scores = np.concatenate([s[m] for s, m in zip(played.scores, masks, strict=False)])
    return of_run, known_at, scores
