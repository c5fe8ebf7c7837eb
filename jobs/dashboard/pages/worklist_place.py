"""A node's place in a worklist: the list's filter travels in the address, with cases beside it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.queries.listed_page import place_on_list
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist import beside_on_list
from ringfence.connector.store.queries.worklist_filter import Place
from ringfence.jobs.views.explain import Explanation
from ringfence.jobs.worklist.list_choice import ListChoice, choose_list
from ringfence.jobs.worklist.request import NAMES, filter_of

MAX_LIST_CHARS = 1_000
SHOW = "show"  # a property of the nodes as a column


@dataclass(frozen=True, slots=True)
class WorklistPlace:
    """Addresses of the list, and of the cases before and after a node; None at its ends.

    `class_` is what the list is about, `title` what a link back to it says.
    """

    class_: str
    title: str
    text: str
    back: str
    before: str | None
    after: str | None


def node_address(node_key: str, listed: str = "") -> str:
    """Return the address of a node's page, on a list where it was reached from one.

    >>> node_address("i:7", "class=mule")
    '/node?key=i%3A7&list=class%3Dmule'
    """
    return f"/node?{urlencode({'key': node_key} | ({'list': listed} if listed else {}))}"


def find_place(
    queries: ProjectQueries, explanation: Explanation, listed: str
) -> WorklistPlace | None:
    """Return a node's place in the list of an address; None where that can't be read."""
    if not listed or len(listed) > MAX_LIST_CHARS:
        return None
    asked = [(name, value) for name, value in parse_qsl(listed) if name in (*NAMES, SHOW)]
    try:
        wanted = filter_of({name: value for name, value in asked if name != SHOW})
        choice = choose_list(queries, wanted)
    except ConfigError:
        return None
    place = _place_of_node(queries, choice, explanation)
    if place is None:
        return None
    before, after = beside_on_list(queries, choice.wanted, place)
    text, name = urlencode(asked), wanted.list_
    return WorklistPlace(
        choice.wanted.class_,
        f"the list of {choice.wanted.class_}" if name is None else f"list {name}",
        text,
        f"/worklist?{text}",
        None if before is None else node_address(before, text),
        None if after is None else node_address(after, text),
    )


def _place_of_node(
    queries: ProjectQueries, choice: ListChoice, explanation: Explanation
) -> Place | None:
    """A node's place in a list; None where it has none."""
    wanted, key = choice.wanted, explanation.typed_key
    if choice.is_list:
        return place_on_list(queries, wanted, key)
    p = next((bar.p for bar in explanation.p_values if bar.class_ == wanted.class_), None)
    return None if p is None else (p, key)


def own_address(given: str, otherwise: str) -> str:
    """Return an address of these two pages that a form sends back; another one is not followed.

    >>> own_address("/worklist?class=mule", "/"), own_address("//elsewhere.org/worklist?", "/")
    ('/worklist?class=mule', '/')
    """
    plain = given.isascii() and given.isprintable() and "\\" not in given
    ours = given.startswith(("/worklist?", "/node?"))
    return given if plain and ours and len(given) <= 2 * MAX_LIST_CHARS else otherwise
