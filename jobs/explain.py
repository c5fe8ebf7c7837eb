"""`ringfence explain KEY`: all that is known of one node's set, as the Node page shows it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from ringfence.connector.errors import GraphError, RingfenceError
from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.models import class_names
from ringfence.connector.quoting import quote
from ringfence.connector.tables import grouping, label, member, prediction
from ringfence.connector.times import words
from ringfence.jobs.looking import Look, chain_entry_of

if TYPE_CHECKING:
    from ringfence.connector.graph import Graph

MOST_NEIGHBOURS = 24


@dataclass(frozen=True, slots=True)
class Explanation:
    """One evaluated node: its set and p-values, its run, its class when known, its neighbours.

    `neighbours` is None where the graph was not asked.
    """

    key: str
    typed_key: str
    words: str
    classes: tuple[str, ...]
    p_values: tuple[dict[str, Any], ...]
    alpha: float
    degree: int
    in_graph: bool
    run: dict[str, Any]
    chain: dict[str, Any] | None
    history: tuple[dict[str, Any], ...]
    groups: dict[str, str]
    neighbours: tuple[dict[str, Any], ...] | None


def candidates(text: str) -> list[str]:
    """Return the typed keys that a person may mean by `text`.

    >>> candidates("12"), candidates("s:12"), candidates("a b")
    (['i:12', 's:12', 'f:12.0'], ['s:12', 's:s:12'], ['s:a b'])
    """
    text = text.replace("\x00", "")
    found = []
    if text[:2] in {"i:", "s:", "f:"}:
        found.append(text)
    for kind in (int, str, float):
        try:
            found.append(encode_key(kind(text)))
        except (ValueError, OverflowError, GraphError):
            continue
    return list(dict.fromkeys(one for one in found if len(one) <= 600))


def explain(
    look: Look, text: str, graph: Graph | None = None, mapping: GraphMapping | None = None
) -> Explanation | None:
    """Return what is known of the node with this key; None where it was never evaluated."""
    found = look.first(
        select(prediction).where(
            prediction.c.project == look.project, prediction.c.node_key.in_(candidates(text))
        )
    )
    if found is None:
        return None
    run = look.run(found["seq"]) or {}
    names = class_names(look.store, look.project)[run["model"]]
    inside, p = json.loads(found["classes"]), json.loads(found["p_values"])
    bars = [
        {"class": name, "p": value, "in_set": name in inside}
        for name, value in zip(names, p, strict=True)
    ]
    with look.store.reading() as connection:
        entry = chain_entry_of(connection, look.project, found["seq"])
    typed = found["node_key"]
    neighbours = None
    if graph is not None and mapping is not None:
        neighbours = _neighbours(look, graph, mapping, typed)
    return Explanation(
        key=str(decode_key(typed)),
        typed_key=typed,
        words=set_words(inside, len(names), dict(zip(names, p, strict=True)), run["alpha"]),
        classes=tuple(inside),
        p_values=tuple(sorted(bars, key=lambda bar: -bar["p"])),
        alpha=run["alpha"],
        degree=found["degree"],
        in_graph=found["in_graph"],
        run=run,
        chain=dict(entry) if entry else None,
        history=tuple(_history(look, typed)),
        groups=_groups(look, typed),
        neighbours=neighbours,
    )


def set_words(inside: list[str], classes: int, p: dict[str, float], alpha: float) -> str:
    """Return a set in words.

    >>> set_words([], 3, {}, 0.1)
    'no class conforms: none of the 3 classes reaches a p-value above 0.1'
    >>> set_words(["a", "b"], 2, {"a": 0.5, "b": 0.3}, 0.1)
    'nothing can be excluded: all 2 classes are in the set'
    >>> set_words(["a"], 3, {"a": 0.04}, 0.1)
    'a, put into an empty set as the likeliest class (p = 0.04): no class conforms at 0.1'
    >>> set_words(["a", "b"], 3, {"a": 0.5, "b": 0.3}, 0.1)
    'may be a or b; the other 1 of 3 classes is excluded with at most 10 % error'
    """
    if not inside:
        return f"no class conforms: none of the {classes} classes reaches a p-value above {alpha:g}"
    if len(inside) == 1 and p[inside[0]] <= alpha:
        return (
            f"{inside[0]}, put into an empty set as the likeliest class "
            f"(p = {p[inside[0]]:.3g}): no class conforms at {alpha:g}"
        )
    if len(inside) == classes:
        return f"nothing can be excluded: all {classes} classes are in the set"
    others = classes - len(inside)
    return (
        f"may be {' or '.join(inside)}; the other {others} of {classes} classes "
        f"{'is' if others == 1 else 'are'} excluded with "
        f"at most {100 * alpha:g} % error"
    )


def record_of(found: Explanation) -> list[tuple[str, str]]:
    """Return names and values of what is on record about a node, for the page and the terminal."""
    run = found.run
    chain = f"{found.chain['n']}, hash {found.chain['hash']}" if found.chain else "none"
    noticed = [
        ("class noticed", f"{one['label']}, {words(one['noticed_ns'])}") for one in found.history
    ]
    return [
        ("key", found.typed_key),
        ("run", f"{run['seq']}, decided {words(run['decided_ns'])}"),
        ("rule", f"{run['rule']}, score {run['score']}, alpha {run['alpha']:g}"),
        ("threshold", readable("threshold", run["threshold"])),
        ("model", run["model"]),
        ("degree when evaluated", str(found.degree)),
        ("chain entry", chain),
        *noticed,
        *((f"group {name}", value) for name, value in found.groups.items()),
    ]


def state_words(found: Explanation) -> str:
    """Return what became of a node since it got its set."""
    gone = "" if found.in_graph else " The node had left the graph before its set reached it."
    if not found.history:
        return f"Its class is not known yet.{gone}"
    last = found.history[-1]
    held = "in the set" if last["covered"] else "missed by the set"
    unseen = ", a class that the model never saw" if last["unseen"] else ""
    return f"Its class is known: {last['label']}, {held}{unseen}.{gone}"


def readable(name: str, value: Any) -> str:
    """Return a column of a run for a person.

    >>> readable("threshold", None), readable("n_nodes", 12345), readable("decided_ns", 0)
    ('−∞ (the full set)', '12,345', '1970-01-01 00:00:00Z')
    """
    if name.startswith("threshold") and value is None:
        return "−∞ (the full set)"
    if name.endswith("_ns"):
        return words(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _history(look: Look, typed: str) -> list[dict[str, Any]]:
    query = select(label).where(label.c.project == look.project, label.c.node_key == typed)
    return look.rows(query.order_by(label.c.noticed_ns))


def _groups(look: Look, typed: str) -> dict[str, str]:
    query = select(grouping.c.property, grouping.c.value).where(
        grouping.c.project == look.project, grouping.c.node_key == typed
    )
    return {row["property"]: row["value"] for row in look.rows(query)}


def _neighbours(
    look: Look, graph: Graph, mapping: GraphMapping, typed: str
) -> tuple[dict[str, Any], ...] | None:
    """Neighbours from the graph, with what SQL knows of them; None where it can't be asked."""
    types = "|".join(quote(kind.type) for kind in mapping.relationships)
    key, class_ = quote(mapping.key), quote(mapping.class_property)
    label_ = quote(mapping.label)
    query = (
        f"MATCH (n:{label_} {{{key}: $key}})-[:{types}]-(m:{label_}) WHERE m <> n "
        f"RETURN DISTINCT m.{key} AS key, m.{class_} AS class ORDER BY key LIMIT $most"
    )
    try:
        rows = graph.read(query, key=decode_key(typed), most=MOST_NEIGHBOURS) if types else []
    except RingfenceError:
        return None
    keys = [encode_key(row["key"]) for row in rows if row["key"] is not None]
    sets = _sets(look, keys)
    roles = _roles(look, keys)
    found = []
    for row in rows:
        own = encode_key(row["key"])
        known = None if row["class"] is None else str(row["class"])
        found.append(
            {
                "key": str(row["key"]),
                "class": known,
                "set": sets.get(own),
                "role": roles.get(own),
            }
        )
    return tuple(found)


def _sets(look: Look, keys: list[str]) -> dict[str, list[str]]:
    query = select(prediction.c.node_key, prediction.c.classes).where(
        prediction.c.project == look.project, prediction.c.node_key.in_(keys)
    )
    return {row["node_key"]: json.loads(row["classes"]) for row in look.rows(query)}


def _roles(look: Look, keys: list[str]) -> dict[str, str]:
    query = select(member.c.node_key, member.c.role).where(
        member.c.project == look.project, member.c.node_key.in_(keys)
    )
    return {row["node_key"]: row["role"] for row in look.rows(query)}
