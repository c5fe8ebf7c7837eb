"""The realised false share of each list, from sealed rows: who was listed, which class came.

A list is its terms: a list whose promise was changed in the configuration is another one from then
on, and the audit of the old one goes on with the nodes that it holds. Nothing is stored here:
the nodes of a list, its terms and the classes are sealed already, and are counted in SQL.

A server is asked for the same rows by every scrape and page. They follow from what the chain seals,
so it counts once per newest entry of the chain; an edit past the chain is for `ringfence verify`.

A run of which no verdict of coverage may speak yet counts in no verdict of a list either, unless
nearly all of its listed nodes are known: then nobody chose among them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from ringfence.connector.list_terms import ListTerms, weakest
from ringfence.connector.store.chain import head
from ringfence.connector.store.engine import Store
from ringfence.connector.store.worklist.list_counts import ListCount, early_runs, list_counts
from ringfence.connector.store.worklist.listed_nodes import ListedRun, listed_runs
from ringfence.connector.times import NANOSECONDS
from ringfence.models.calibration.cohort import NEARLY_ALL
from ringfence.models.guarantee.list_verdict import RunOfList, judge_list

WINDOW_DAYS = 90
DAY_NS = 86_400 * NANOSECONDS
NOT_PROMISED = "; promised of all nodes together"


@dataclass(frozen=True, slots=True)
class ListAudit:
    """A list over some runs: what it promised, what came true, and the verdict in words.

    `slice` is `run`, `window` (the last 90 days), `total`, `sample` (its nodes in the audit sample,
    which nobody chose to label) or `group`, of the property and value `group`. `empty` runs listed
    nobody, whether or not the row has nodes of the others; in `mean_of_runs` they are 0, up to the
    newest run that counts (`models.guarantee.list_verdict`). `pooled` is the share of all listed
    nodes of known class; `low` and `high` are the pooled share with every unknown node counted as
    right, and as wrong. `early` are known nodes that count in no verdict yet. A run has no verdict
    of its own: the promise is about many. Nor has a group; where it is far worse, that is *watch*.
    """

    terms: ListTerms
    slice: str
    seq: int
    runs: int
    empty: int
    evaluated: int
    listed: int
    known: int
    false: int
    mean_of_runs: float | None
    pooled: float | None
    low: float
    high: float
    p_value: float
    verdict: str
    status: str
    words: str
    group: str = ""
    early: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the values of `--json` and the API."""
        values = asdict(self)
        return {**values.pop("terms"), **values}


@dataclass(frozen=True, slots=True)
class _Remembered:
    """Rows, and the newest entry of the chain when they were counted."""

    newest: tuple[int, str] | None
    rows: tuple[ListAudit, ...]


_REMEMBERED: WeakKeyDictionary[Store, dict[tuple[str, bool], _Remembered]] = WeakKeyDictionary()


def audit_lists(store: Store, project: str, *, detail: bool = False) -> list[ListAudit]:
    """Return the rows of every list: total, the last 90 days, the newest run, the audit sample.

    With `detail` every run has a row, and every group over all runs.
    """
    remembered = _REMEMBERED.setdefault(store, {})
    with store.reading() as connection:
        newest = head(connection, project)
        before = remembered.get((project, detail))
        if before is not None and before.newest == newest:
            return list(before.rows)
        runs = listed_runs(connection, project)
        counts = list_counts(connection, project, runs) if runs else []
        groups = list_counts(connection, project, runs, groups=True) if runs and detail else []
        early = early_runs(connection, project)
    rows = audit_runs(runs, counts, early, groups=groups, every_run=detail)
    remembered[project, detail] = _Remembered(newest, tuple(rows))
    return rows


def audit_runs(
    runs: Sequence[ListedRun],
    counts: Sequence[ListCount],
    early: Collection[int] = (),
    *,
    groups: Sequence[ListCount] = (),
    every_run: bool = False,
) -> list[ListAudit]:
    """Return what `audit_lists` does, of runs and counts that are read already."""
    if not runs:
        return []
    terms_seen = dict.fromkeys(facts.terms for run in runs for facts in run.lists)
    newest = runs[-1].decided_ns - WINDOW_DAYS * DAY_NS
    rows = []
    for terms in terms_seen:
        those = [run for run in runs if any(facts.terms == terms for facts in run.lists)]
        of_list = _Counted(terms, [it for it in counts if it.name == terms.name], early)
        recent = [run for run in those if run.decided_ns >= newest]
        rows.append(of_list.audit("total", those))
        rows += [of_list.audit("window", recent)] if recent else []
        rows += [of_list.audit("run", [run]) for run in (those if every_run else those[-1:])]
        sampled = [it for it in of_list.counts if it.sampled]
        if sampled:
            rows.append(_Counted(terms, sampled, ()).audit("sample", those))
        by_group: dict[str, list[ListCount]] = defaultdict(list)
        for count in groups:
            if count.name == terms.name:
                by_group[count.group].append(count)
        for name, of_group in sorted(by_group.items()):
            row = _Counted(terms, of_group, early).audit("group", those)
            rows.append(_not_promised(replace(row, group=name)))
    return rows


def _not_promised(row: ListAudit) -> ListAudit:
    verdict = "watch" if row.verdict == "broken" else row.verdict
    words = row.words.replace(f": {row.verdict};", f" in {row.group}: {verdict};", 1)
    return replace(row, verdict=verdict, words=words + NOT_PROMISED)


@dataclass(frozen=True, slots=True)
class _Counted:
    """The counts of one list, and the runs that may be judged only where they are known whole."""

    terms: ListTerms
    counts: Sequence[ListCount]
    early: Collection[int]

    def audit(self, slice_: str, runs: Sequence[ListedRun]) -> ListAudit:
        terms = self.terms
        listed, known, false = ({run.seq: 0 for run in runs} for _ in range(3))
        for count in self.counts:
            if count.seq in listed:
                listed[count.seq] += count.nodes
                if count.label is not None:
                    known[count.seq] += count.nodes
                    false[count.seq] += count.nodes * terms.is_wrong(count.label)
        waits = {
            seq for seq in listed if seq in self.early and known[seq] < NEARLY_ALL * listed[seq]
        }
        facts = {run.seq: item for run in runs for item in run.lists if item.terms == terms}
        lists = [
            RunOfList(facts[seq].listed, known[seq], false[seq], seq in waits) for seq in listed
        ]
        judged = judge_list(lists, terms.may_be_wrong, pooled=terms.per == "stream")
        in_all, of_known, wrong = (sum(of.values()) for of in (listed, known, false))
        early = sum(known[seq] for seq in waits)
        verdict = "no verdict" if slice_ == "run" else judged.verdict
        words = _describe(terms, len(runs), in_all, of_known, wrong, judged.mean_of_runs, verdict)
        if slice_ == "sample":
            words = f"of the audit sample: {words}"
        if early:
            words += f"; {early:,} known nodes of runs whose classes are a choice do not count"
        return ListAudit(
            terms,
            slice_,
            runs[-1].seq,
            len(runs),
            sum(not item.listed for item in facts.values()),
            sum(run.evaluated for run in runs),
            in_all,
            of_known,
            wrong,
            judged.mean_of_runs,
            judged.pooled,
            wrong / in_all if in_all else 0.0,
            (wrong + in_all - of_known) / in_all if in_all else 0.0,
            judged.p_value,
            verdict,
            weakest(item.status for item in facts.values()),
            words,
            early=early,
        )


def _describe(
    terms: ListTerms,
    runs: int,
    listed: int,
    known: int,
    false: int,
    mean: float | None,
    verdict: str,
) -> str:
    head = f"list {terms.name}: {verdict}; {listed:,} nodes listed in {runs:,} runs"
    if not known:
        return f"{head}, none of known class"
    share = f"{false:,} of {known:,} of known class are {terms.wrong} ({100 * false / known:.1f} %)"
    promise = f"at most {100 * terms.may_be_wrong:g} % promised"
    if terms.per == "stream":
        return f"{head}, {share}; {promise} of all together"
    if mean is None:
        return f"{head}, {share}; no run counts yet; {promise} on average over runs"
    average = f"{100 * mean:.1f} % on average over runs, empty lists as 0"
    return f"{head}, {share}; {average}; {promise} on that average"
