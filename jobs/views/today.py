"""Today in three lines: the promise and whether it is kept, what came, what waits for a person."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from ringfence.connector.store.queries.news import News, read_news
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.sample import count_sample
from ringfence.connector.store.queries.worklist import count_worklist
from ringfence.connector.store.queries.worklist_filter import WorklistFilter
from ringfence.connector.times import NANOSECONDS, format_time
from ringfence.jobs.views.promise import late_classes_of_run

MAX_WAITING = 10_000  # nodes of a list that are counted
WEEK_NS = 7 * 86_400 * NANOSECONDS
VISIT_GAP_NS = 1_800 * NANOSECONDS  # of silence, after which a visit is another one
LONGEST_NS_TEXT = 20


@dataclass(frozen=True, slots=True)
class TodayLine:
    """A line: a word with its tone, what it says, where it leads, and short further lines.

    `others` are further lines that lead somewhere: words and address.
    """

    word: str
    headline: str
    address: str
    details: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Visits:
    """When a person was here last and before that, in nanoseconds; 0 where that is not known."""

    last_ns: int = 0
    before_ns: int = 0

    @classmethod
    def from_text(cls, text: str) -> Visits:
        """Return what `as_text` gave; of anything else, no visits.

        >>> Visits.from_text("20.10"), Visits.from_text("x.1"), Visits.from_text("")
        (Visits(last_ns=20, before_ns=10), Visits(last_ns=0, before_ns=0), \
Visits(last_ns=0, before_ns=0))
        """
        last, _, before = text.partition(".")
        parts = (last, before)
        if not all(p.isascii() and p.isdecimal() and len(p) < LONGEST_NS_TEXT for p in parts):
            return cls()
        return cls(int(last), int(before))

    def as_text(self) -> str:
        """Return both moments as a cookie holds them."""
        return f"{self.last_ns}.{self.before_ns}"

    def visited(self, now_ns: int) -> Visits:
        """Return the visits with one now; what follows a visit closely is the same visit."""
        same = now_ns - self.last_ns < VISIT_GAP_NS
        return Visits(now_ns, self.before_ns if same else self.last_ns)


def promise_line(queries: ProjectQueries) -> TodayLine:
    """Return the worst promised row, one figure and one target, and how late classes come."""
    row, runs = queries.verdict(), queries.runs(last=1)
    late = tuple(_as_sentence(words) for words in late_classes_of_run(runs[-1])) if runs else ()
    if row is None or row.coverage is None:
        return TodayLine("not enough known yet", _first_step(queries), "/coverage", late)
    whom = "" if row.slice in {"total", "run", "window"} else f" of {row.slice} {row.name}"
    if row.verdict == "not enough known yet":
        headline = f"{row.known:,} of {row.evaluated:,} nodes{whom} are known: too few to tell"
    else:
        headline = f"{100 * row.coverage:.1f} % covered{whom}, {100 * (1 - row.alpha):g} % promised"
    address = "/coverage" if not whom else "/classes"
    return TodayLine(row.verdict, headline, address, late)


def news_line(queries: ProjectQueries, visits: Visits, now_ns: int) -> TodayLine:
    """Return what came since the visit before this one and within the last seven days."""
    week = read_news(queries, now_ns - WEEK_NS)
    details = [f"In the last 7 days: {describe_news(week)}."]
    newest = week
    if visits.before_ns:
        newest = read_news(queries, visits.before_ns)
        when = format_time(visits.before_ns)[:16]
        details.insert(0, f"Since your last visit ({when}): {describe_news(newest)}.")
    headline = f"{newest.nodes:,} new nodes" if newest.nodes else "No new nodes"
    since = "since your last visit" if visits.before_ns else "in the last 7 days"
    return TodayLine("new", f"{headline} {since}", "/runs", tuple(details))


def describe_news(news: News) -> str:
    """Return counts in words, without those that are nothing.

    >>> describe_news(News(0, 2, 1505, 1, 0, 0, 0, {"investigate": 12}))
    '1,505 nodes in 2 runs, 12 on list investigate, 1 alarm fired'
    >>> describe_news(News(0, 0, 0, 0, 0, 0, 0))
    'nothing'
    """
    parts = [f"{_count(news.nodes, 'node')} in {_count(news.runs, 'run')}"] if news.runs else []
    parts += [f"{count:,} on list {name}" for name, count in news.listed.items() if count]
    parts += [f"{_count(news.alarms, 'alarm')} fired"] if news.alarms else []
    parts += [_count(news.promotions, "promotion")] if news.promotions else []
    parts += [_count(news.rollbacks, "rollback")] if news.rollbacks else []
    parts += [f"{_count(news.marked, 'node')} done by people"] if news.marked else []
    return ", ".join(parts) or "nothing"


def waiting_line(queries: ProjectQueries) -> TodayLine:
    """Return what waits for a person, the most urgent first."""
    firing = [alarm.rule for alarm in queries.alarms() if alarm.state == "firing"]
    sample = count_sample(queries).unknown
    unusable = sum(reason.nodes for reason in queries.quarantine())
    listed = listed_in_last_run(queries)
    waiting = [
        (len(firing), f"{_count(len(firing), 'alarm')} firing", "/#alarms"),
        (sample, f"{_count(sample, 'class', 'classes')} of the audit sample to find out",
         "/worklist?sample=1"),
        *((count, f"{_count(count, 'node')} of the last run on list {name}",
           list_address(name, queries.runs(last=1)[-1].seq)) for name, count in listed.items()),
        (unusable, f"{_count(unusable, 'node')} in quarantine", "/#quarantine"),
    ]  # fmt: skip
    due = [(words, address) for count, words, address in waiting if count]
    if not due:
        return TodayLine("waiting", "Nothing waits for a person", "/worklist")
    words, address = due[0]
    return TodayLine("waiting", words, address, others=tuple(due[1:]))


def list_address(name: str, seq: int) -> str:
    """Return the address of the worklist of a list of a run.

    >>> list_address("investigate", 7)
    '/worklist?list=investigate&run=7'
    """
    return f"/worklist?{urlencode({'list': name, 'run': seq})}"


def listed_in_last_run(queries: ProjectQueries) -> dict[str, int]:
    """Return how many nodes the last run put on each list that asks for work, and still wait.

    They are those of the list's worklist: of unknown class, and not done.
    """
    runs = queries.runs(last=1)
    lists = (runs[-1].lists or ()) if runs else ()
    names = [facts["name"] for facts in lists if not facts["is_clear"]]
    return {
        name: count_worklist(queries, WorklistFilter("", list_=name, run=runs[-1].seq), MAX_WAITING)
        for name in names
    }


def _first_step(queries: ProjectQueries) -> str:
    """What to type while there is no verdict."""
    if not queries.models():
        return "Nothing is trained yet. Run: ringfence train"
    if not queries.runs(last=1):
        return "No node has a set yet. Run: ringfence score"
    return "No audit yet. Run: ringfence audit"


def _count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    >>> _count(1, "node"), _count(2_000, "node"), _count(2, "class", "classes")
    ('1 node', '2,000 nodes', '2 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def _as_sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
