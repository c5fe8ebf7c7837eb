"""What a list would hold at other shares: of the newest run's open nodes, and on validation nodes.

Nothing is decided here. Up to the promised share the run has on record at which share it would have
listed each node; beyond it, the measurement on validation nodes says about how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ringfence.connector.list_terms import ListFacts
from ringfence.connector.store.queries.listed_page import count_at_shares, count_open
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.scoring.list_trade_off import SHARES, ListAtShare, ListTradeOff


@dataclass(frozen=True, slots=True)
class OpenAtShare:
    """A list at one share: how many open nodes of the run, and what validation nodes say.

    `nodes` is exact up to the promised share, and about so many beyond it; None where nothing says
    how many.
    """

    share: float
    nodes: int | None
    is_exact: bool
    is_promised: bool
    measured: ListAtShare | None

    def words(self, facts: ListFacts, seq: int, unknown: int, validation: int) -> str:
        """Say what the list would be at this share."""
        about = "" if self.is_exact else "about "
        nodes = "an unknown number" if self.nodes is None else f"{about}{self.nodes:,}"
        holds = ", which is promised, the list holds" if self.is_promised else " it would hold"
        of_run = f"of the {unknown:,} nodes of unknown class of run {seq}"
        sentence = f"at {100 * self.share:g} %{holds} {nodes} {of_run}"
        if self.measured is None:
            return sentence
        terms, found = facts.terms, self.measured
        right = f"not {terms.class_}" if terms.is_clear else terms.class_
        wrong = "it was empty" if found.wrong is None else f"{_percent(found.wrong)} of it was"
        return (
            f"{sentence}; on {validation:,} validation nodes it held {_percent(found.listed)} of "
            f"all and {_percent(found.found)} of those that are {right}, and {wrong}"
            + ("" if found.wrong is None else f" {terms.wrong}")
        )


def list_at_shares(
    queries: ProjectQueries, facts: ListFacts, seq: int, curve: ListTradeOff | None
) -> tuple[list[OpenAtShare], int]:
    """Return a list at several shares, and how many nodes of its run are of unknown class."""
    terms = facts.terms
    measured = {row.may_be_wrong: row for row in curve.rows} if curve is not None else {}
    shares = sorted({*SHARES, *measured, terms.may_be_wrong})
    unknown = count_open(queries, seq)
    counts = count_at_shares(queries, seq, terms.name, shares)
    return [
        _at(share, count, unknown, terms.may_be_wrong, measured.get(share))
        for share, count in zip(shares, counts, strict=True)
    ], unknown


def nearest(rows: Sequence[OpenAtShare], asked: float) -> int:
    """Return the place of the share next to one that was asked for."""
    return min(range(len(rows)), key=lambda place: abs(rows[place].share - asked))


def _at(
    share: float, count: int, unknown: int, promised: float, measured: ListAtShare | None
) -> OpenAtShare:
    is_exact = share <= promised
    nodes: int | None = count
    if not is_exact:
        nodes = None if measured is None else max(count, round(measured.listed * unknown))
    return OpenAtShare(share, nodes, is_exact, share == promised, measured)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
