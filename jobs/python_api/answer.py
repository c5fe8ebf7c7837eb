"""Answers in words with a table beside them: as text, and as HTML where a notebook shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import pandas as pd

from ringfence.jobs.explanation.reasons import Reason
from ringfence.jobs.integrity.verify import Verification
from ringfence.jobs.views.explain import Explanation
from ringfence.jobs.views.status import Status

MAX_ROWS = 40


@dataclass(frozen=True, slots=True)
class Answer:
    """Sentences, the table that they are about, and the values that both were made from.

    >>> print(Answer("node <7>", ("Only mule fits.",)))
    node <7>
    Only mule fits.
    >>> Answer("node <7>", ("Only mule fits.",))._repr_html_()
    '<h4>node &lt;7&gt;</h4><p>Only mule fits.</p>'
    """

    title: str
    words: tuple[str, ...] = ()
    frame: pd.DataFrame = field(default_factory=pd.DataFrame)
    values: Any = None

    def __repr__(self) -> str:
        """Title and sentences; the table where there is one."""
        table = [] if self.frame.empty else [self.frame.head(MAX_ROWS).to_string(index=False)]
        return "\n".join([self.title, *self.words, *table])

    def _repr_html_(self) -> str:
        """The same as HTML; texts of the graph are escaped."""
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.words)
        return f"<h4>{escape(self.title)}</h4>{said}{_table(self.frame)}"


def why_answer(explanation: Explanation) -> Answer:
    """Return what a node's set rests on, by what was left out."""
    reasons, changes = explanation.reasons, tuple[str, ...]()
    rows: list[dict[str, Any]] = []
    if reasons is not None:
        rows = [_reason_row(reasons.classes, reason) for reason in reasons.reasons]
        changes = tuple(change.describe() for change in reasons.smallest)
    because = (reasons.sentence,) if reasons is not None and reasons.sentence else ()
    words = (explanation.sentence, *explanation.doubts, *because, *changes)
    title = f"Why node {explanation.key} has its set"
    return Answer(title, words, pd.DataFrame(rows), explanation)


def _reason_row(classes: Sequence[str], reason: Reason) -> dict[str, Any]:
    """p-values without a part, and what that changes of the set."""
    return {
        "without": reason.part.describe(),
        "value": reason.value,
        **{f"p {name}": p for name, p in zip(classes, reason.p_values, strict=False)},
        "enters": ", ".join(reason.enters),
        "leaves": ", ".join(reason.leaves),
        "weight": reason.weight,
    }


def status_answer(current: Status) -> Answer:
    """Return a project at a glance: verdict, counts, lists, alarms."""
    verdict = current.verdict
    active = [model.version for model in current.models if model.state == "active"]
    words = (
        "no audit yet" if verdict is None else verdict.words,
        f"{current.evaluated:,} nodes evaluated, {current.unknown:,} of unknown class; read up to "
        f"{current.watermark}; model in use: {', '.join(active) or 'none'}",
        *(row.words for row in current.lists if row.slice == "total"),
        *(f"alarm {alarm.rule}: {alarm.words}" for alarm in current.alarms
          if alarm.state == "firing"),
    )  # fmt: skip
    rows = [
        {"slice": row.slice, "name": row.name, "promised": 1 - row.alpha, "known": row.known,
         "covered": row.coverage, "verdict": row.verdict}
        for row in current.coverage
        if row.slice in ("total", "class", "group")
    ]  # fmt: skip
    return Answer(f"Project {current.project}", words, pd.DataFrame(rows), current)


def verify_answer(done: Verification) -> Answer:
    """Return whether everything on record is as it was decided."""
    sound = not done.problems
    checked = f"{done.entries:,} entries, {done.runs:,} runs, {done.predictions:,} predictions"
    title = "The record is as it was decided" if sound else "CHANGED"
    words = (f"compared: {checked}", *done.notes)
    return Answer(title, words, pd.DataFrame({"problem": done.problems}), done)


def _table(frame: pd.DataFrame) -> str:
    """A frame as HTML that pandas escapes; nothing where it has no rows."""
    if frame.empty:
        return ""
    shown = frame.head(MAX_ROWS).to_html(
        index=False, escape=True, border=0, float_format="{:.3g}".format
    )
    left = len(frame) - MAX_ROWS
    return str(shown) + (f"<p>… and {left:,} more rows in .frame</p>" if left > 0 else "")
