"""From tallies to coverage rows: per run, window, model, class and group, each with a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from ringfence.connector.tallies import QUANTITIES, Tally, merged
from ringfence.models.anytime import over_runs
from ringfence.models.selection import Difference, Moments, difference, selection
from ringfence.models.verdict import judge, sentence

RUN, WINDOW, TOTAL, CLASS, GROUP = "run", "window", "total", "class", "group"
NOT_PROMISED = "; the promise is for all nodes together"


def coverage_rows(
    runs: Sequence[Tally], classes: Sequence[Tally], groups: Sequence[Tally], window: int
) -> list[dict[str, Any]]:
    """Return every row, of each model in the order of its runs.

    Nodes of different runs of one model share its calibration nodes, and each is evaluated once:
    the law for all of them together is the same beta-binomial with the larger m.
    """
    rows = []
    for terms, found in groupby(runs, key=lambda tally: tally.terms):
        own = list(found)
        rows += [_row(RUN, [tally]) for tally in own]
        if len(own) > 1 < window:
            spans = [own[max(0, end - window) : end] for end in range(2, len(own) + 1)]
            rows += [_row(WINDOW, span) for span in spans]
        rows += [_total(own[:end]) for end in range(1, len(own) + 1)]
        for slice_, parts in ((CLASS, classes), (GROUP, groups)):
            rows += _named(slice_, [one for one in parts if one.terms == terms], own[-1].seq)
    return rows


def newest(rows: Sequence[dict[str, Any]], slice_: str) -> list[dict[str, Any]]:
    """Return the rows of a slice at the last run that has some."""
    own = [row for row in rows if row["slice"] == slice_]
    last = max((row["seq"] for row in own), default=0)
    return [row for row in own if row["seq"] == last]


def without_group(groups: Sequence[dict[str, Any]], evaluated: int) -> list[str]:
    """Say for each property how many of the evaluated nodes have none, where some have none.

    >>> rows = [{"name": "region=a", "evaluated": 40}, {"name": "region=b", "evaluated": 50}]
    >>> without_group(rows, 90), without_group(rows, 100)[0][:56]
    ([], '10 of 100 evaluated nodes have no region: they lack the ')
    """
    counted: dict[str, int] = {}
    for row in groups:
        name = row["name"].partition("=")[0]
        counted[name] = counted.get(name, 0) + row["evaluated"]
    return [
        f"{evaluated - many:,} of {evaluated:,} evaluated nodes have no {name}: they lack the "
        "property, or were audited before [audit] groups named it, which counts for later runs only"
        for name, many in counted.items()
        if many < evaluated
    ]


def _named(slice_: str, parts: Sequence[Tally], seq: int) -> list[dict[str, Any]]:
    by_name: dict[str, list[Tally]] = {}
    for part in parts:
        by_name.setdefault(part.name, []).append(part)
    looks = max(1, len(by_name))
    return [
        _row(slice_, own, looks=looks) | {"seq": seq, "name": name}
        for name, own in sorted(by_name.items())
    ]


def _total(runs: Sequence[Tally]) -> dict[str, Any]:
    known = [tally.counts["known"] for tally in runs]
    covered = [tally.counts["covered"] for tally in runs]
    ever = over_runs(_size(merged(runs)), known, covered, runs[-1].alpha)
    return _row(TOTAL, runs, anytime_p=ever.p_value)


def _size(tally: Tally) -> float:
    """The n of the law: exact for NodeEx, the effective sample size for EdgeEx."""
    exact = _is_exact(tally)
    return float(tally.n_calibration) if exact else tally.effective_calibration


def _row(
    slice_: str, parts: Sequence[Tally], *, anytime_p: float | None = None, looks: int = 1
) -> dict[str, Any]:
    tally = merged(parts)
    counts = tally.counts
    evaluated, known = counts["evaluated"], counts["known"]
    promised = slice_ not in {CLASS, GROUP}
    found = judge(
        _size(tally), evaluated, known, counts["covered"], tally.alpha,
        anytime_p=anytime_p, looks=looks,
    )  # fmt: skip
    if not promised and found.verdict == "broken":  # nobody promised it: a reason to look closer
        found = replace(found, verdict="watch")
    bias, bias_words = selection(known, evaluated - known, _differences(tally))
    words = sentence(found, evaluated, known, tally.alpha, runs=len(parts))
    return {
        "seq": tally.seq,
        "slice": slice_,
        "name": "",
        "model": tally.model,
        "alpha": tally.alpha,
        **counts,
        "coverage": found.coverage,
        "low": found.low,
        "high": found.high,
        "p_value": found.p_value,
        "anytime_low": found.anytime_low,
        "anytime_p": found.anytime_p,
        "mean_size": tally.sums["size_all"] / evaluated,
        "mean_degree": tally.sums["degree_all"] / evaluated,
        "bias": bias,
        "bias_words": bias_words,
        "exact": promised and _is_exact(tally),
        "raised_by": found.raised_by,
        "verdict": found.verdict,
        "words": words if promised else words + NOT_PROMISED,
    }


def _differences(tally: Tally) -> list[Difference]:
    known, unknown = tally.counts["known"], tally.counts["evaluated"] - tally.counts["known"]
    if not known or not unknown:
        return []
    names = {"degree": "degree", "size": "set size", "top_p": "p-value of the likeliest class"}
    return [
        difference(
            names[one],
            Moments(known, tally.sums[f"{one}_known"], tally.sums[f"{one}_known_squared"]),
            Moments(
                unknown,
                tally.sums[f"{one}_all"] - tally.sums[f"{one}_known"],
                tally.sums[f"{one}_all_squared"] - tally.sums[f"{one}_known_squared"],
            ),
        )
        for one in QUANTITIES
    ]


def _is_exact(tally: Any) -> bool:
    """Whether all calibration nodes counted alike: NodeEx without drift weights."""
    return bool(tally.rule == "NodeEx" and tally.effective_calibration == tally.n_calibration)
