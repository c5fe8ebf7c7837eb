"""The smallest change that takes a class in or out of a set.

One part is the smallest there is. Where no single part does it, the parts that move the class's
p-value the right way are left out together, the strongest first, until the class comes in or goes
out; then every part that is not needed is put back. So no part of an answer can be put back alone;
another answer with fewer parts may exist where parts work together.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.explanation.reasons import TYPE, Part, SmallestChange
from ringfence.models.explanation.counterfactual_query import Question

Floats = NDArray[np.float64]
Ask = Callable[[Sequence[Question]], Floats]
"""Questions to p-values [m, classes]; fewer rows than questions where the time is over."""

MAX_PARTS = 6  # of one change
MAX_CLASSES = 8  # searched with several parts: those nearest to their levels
MAX_ROUNDS = 6  # of putting parts back


@dataclass(frozen=True, slots=True)
class Asked:
    """What single questions gave: p-values now [classes], and without each part [n, classes]."""

    classes: Sequence[str]
    levels: Floats
    now: Floats
    questions: Sequence[tuple[Question, Part]]
    without: Floats


def find_smallest(asked: Asked, ask: Ask) -> list[SmallestChange]:
    """Return the smallest change found for each class; none where no change was found."""
    units = [place for place, (_, part) in enumerate(asked.questions) if part.kind != TYPE]
    orders = {class_: _strongest(asked, units, class_) for class_ in range(len(asked.classes))}
    parts_left_out = {
        class_: order[:1]
        for class_, order in orders.items()
        if order and _flipped(asked, class_, asked.without[order[0]])
    }
    searched = _nearest(asked, parts_left_out)
    parts_left_out |= _search_together(asked, ask, {class_: orders[class_] for class_ in searched})
    changes = []
    for class_, places in sorted(parts_left_out.items()):
        p = ask([_together(asked, places)])
        if not len(p):
            break
        changes.append(
            SmallestChange(
                asked.classes[class_],
                not _inside(asked, class_, asked.now),
                tuple(asked.questions[place][1] for place in places),
                float(p[0, class_]),
                float(asked.levels[class_]),
            )
        )
    return sorted(changes, key=lambda change: (len(change.parts), change.class_))


def _inside(asked: Asked, class_: int, p: Floats) -> bool:
    return bool(p[class_] > asked.levels[class_])


def _flipped(asked: Asked, class_: int, p: Floats) -> bool:
    return _inside(asked, class_, p) != _inside(asked, class_, asked.now)


def _strongest(asked: Asked, units: Sequence[int], class_: int) -> list[int]:
    """Parts whose absence moves the class towards its level, the strongest first."""
    sign = -1.0 if _inside(asked, class_, asked.now) else 1.0
    moves = {place: sign * (asked.without[place, class_] - asked.now[class_]) for place in units}
    return sorted((place for place in units if moves[place] > 0), key=lambda place: -moves[place])


def _nearest(asked: Asked, settled: Container[int]) -> list[int]:
    """Classes without an answer yet, those nearest to their levels first."""
    distance = np.abs(asked.now - asked.levels)
    rest = [class_ for class_ in range(len(asked.classes)) if class_ not in settled]
    return sorted(rest, key=lambda class_: float(distance[class_]))[:MAX_CLASSES]


def _together(asked: Asked, places: Sequence[int]) -> Question:
    question, *others = (asked.questions[place][0] for place in places)
    for other in others:
        question += other
    return question


def _search_together(asked: Asked, ask: Ask, orders: dict[int, list[int]]) -> dict[int, list[int]]:
    tried = [
        (class_, order[:size])
        for class_, order in orders.items()
        for size in range(2, min(len(order), MAX_PARTS) + 1)
    ]
    answers = ask([_together(asked, places) for _, places in tried])
    enough: dict[int, list[int]] = {}
    for (class_, places), p in zip(tried, answers, strict=False):
        if class_ not in enough and _flipped(asked, class_, p):
            enough[class_] = places
    return {class_: _put_back(asked, ask, class_, places) for class_, places in enough.items()}


def _put_back(asked: Asked, ask: Ask, class_: int, places: list[int]) -> list[int]:
    """Put back every part that need not be left out."""
    for _ in range(MAX_ROUNDS):
        if len(places) < 2:
            break
        fewer = [[other for other in places if other != place] for place in reversed(places)]
        answers = ask([_together(asked, some) for some in fewer])
        enough = [
            some for some, p in zip(fewer, answers, strict=False) if _flipped(asked, class_, p)
        ]
        if not enough:
            break
        places = enough[0]
    return places
