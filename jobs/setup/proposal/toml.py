"""A proposal as the text of a `ringfence.toml`, with the reasons as comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ringfence.jobs.config.settings import Neo4jSettings
from ringfence.jobs.setup.proposal.choice import Choice
from ringfence.jobs.setup.proposal.columns import ColumnProposal
from ringfence.jobs.setup.proposal.context import NodeProposal, RelationProposal
from ringfence.jobs.setup.proposal.proposal import Proposal
from ringfence.models.promise.registry import promise_named

HEAD = """\
# Written by `ringfence init`; every setting: docs/configuration.md
# Secrets stay out of this file: RINGFENCE_NEO4J_PASSWORD, RINGFENCE_AUDIT_PASSWORD.
project = {project}

[neo4j]
{server}

[audit]
url = "sqlite:///.ringfence/audit.db"
"""


SCORER = Choice(
    "auto", "the best of trees, typed_sage and their mean, by log loss on validation nodes"
)
WRITTEN_ALWAYS = ("uri", "user", "database")
WRITTEN_IF_SET = ("credentials", "auth", "client_certificate", "client_key", "tls")


def server_lines(neo4j: Neo4jSettings) -> str:
    """Return the lines of [neo4j] for a server; no secret is among them."""
    names = [*WRITTEN_ALWAYS, *(name for name in WRITTEN_IF_SET if name in neo4j.model_fields_set)]
    return "\n".join(f"{name} = {toml(getattr(neo4j, name))}" for name in names)


def as_toml(proposal: Proposal, project: str, server: str) -> str:
    """Return the text of the file; `server` is what `server_lines` returns."""
    head = HEAD.format(project=toml(project), server=server)
    lines = [head, "[graph]"]
    lines += _one_label(proposal) if proposal.features else _several_labels(proposal)
    lines += ["", "[conformal]", "alpha = 0.1", _setting("mode", _mode(proposal))]
    lines.append(_setting("rule", proposal.rule))
    lines.append(_setting("promise", proposal.promise))
    if not proposal.features:
        lines += ["", "[model]", _setting("network", SCORER)]
    if proposal.left_out:
        lines += ["", "# Left out, and why:"]
        lines += [
            f"#   {comment(column.name)}: {comment(column.why)}" for column in proposal.left_out
        ]
    return "\n".join([*lines, ""])


def _mode(proposal: Proposal) -> Choice:
    """Return the mode that the proposed promise belongs to."""
    mode = "per class" if promise_named(str(proposal.promise.value)).per_class else "living"
    return Choice(mode, 'or another of "paper", "living", "per class": docs/settings.md')


def _one_label(proposal: Proposal) -> Iterator[str]:
    features = proposal.features or Choice("", "")
    kind = Choice(proposal.time_kind, f"{proposal.created_at} is a {_TYPES[proposal.time_kind]}")
    yield _setting("label", proposal.label)
    yield _setting("key", proposal.key)
    yield _setting("features", features)
    yield _setting("class_property", proposal.class_property)
    yield _label_delay(proposal.label_delay_days)
    yield _setting("created_at", proposal.arrival)
    yield _setting("time_kind", kind)
    for relation in proposal.relations:
        yield from (
            "",
            f"[[graph.relationships]]  # {comment(relation.why)}",
            f"type = {toml(relation.type)}",
        )
        yield from ("undirected = true", f"created_at = {toml(relation.created_at or '')}")


def _several_labels(proposal: Proposal) -> Iterator[str]:
    yield _setting("class_property", proposal.class_property)
    yield _label_delay(proposal.label_delay_days)
    if proposal.created_at:
        why = f"{proposal.created_at} is a {_TYPES[proposal.time_kind]}"
        yield _setting("time_kind", Choice(proposal.time_kind, why))
    yield ""
    yield f"[[graph.nodes]]  # {_mark(proposal.label)}{comment(proposal.label.why)}"
    yield f"label = {toml(proposal.label.value)}"
    yield 'role = "classified"'
    yield _setting("key", proposal.key)
    yield _setting("created_at", Choice(proposal.created_at or "", proposal.arrival.why))
    yield from _columns(proposal.columns)
    for node in proposal.context:
        yield from _context(node)
    for relation in proposal.relations:
        yield from _relation(relation)
    labels = [(str(proposal.label.value), proposal.columns)]
    labels += [(node.label, node.columns) for node in proposal.context]
    for label, columns in labels:
        yield from _named_kinds(label, columns)


def _named_kinds(label: str, columns: Sequence[ColumnProposal]) -> Iterator[str]:
    """The kinds of a label's columns that the file has to name."""
    named = [column for column in columns if column.named]
    if named:
        yield from ("", f"[graph.columns.{toml(label)}]")
    for column in named:
        yield f"{toml(column.name)} = {{{_kind(column)}}}"


def _kind(column: ColumnProposal) -> str:
    options = ", ".join(f"{name} = {toml(value)}" for name, value in column.options.items())
    return f"kind = {toml(column.kind)}" + (f", options = {{{options}}}" if options else "")


def _context(node: NodeProposal) -> Iterator[str]:
    hops = "one hop" if node.hops == 1 else f"{node.hops} hops"
    yield from ("", f"[[graph.nodes]]  # {node.count} nodes, {hops} away")
    yield f"label = {toml(node.label)}"
    yield _setting("key", node.key)
    yield from _columns(node.columns)


def _columns(columns: Sequence[ColumnProposal], inline: bool = False) -> Iterator[str]:
    """A list of columns; `inline`: those of relationships, whose kinds are named in the list."""
    yield "columns = ["
    for column in columns:
        name = toml(column.name)
        if inline and column.named:
            name = f"{{property = {name}, {_kind(column)}}}"
        yield f"  {name},  # {column.kind}: {comment(column.why)}"
    yield "]"


def _relation(column: RelationProposal) -> Iterator[str]:
    yield from ("", f"[[graph.relationships]]  # {comment(column.why)}")
    yield f"from = {toml(column.source)}"
    yield f"type = {toml(column.type)}"
    yield f"to = {toml(column.target)}"
    if column.created_at:
        yield f"created_at = {toml(column.created_at)}"
    if column.columns:
        yield from _columns(column.columns, inline=True)
    if column.after_evaluation:
        yield "after_evaluation = true  # CHECK THIS: cut, for it may come with the class"


_TYPES = {"zoned": "ZONED DATETIME", "local": "LOCAL DATETIME", "milliseconds": "INTEGER"}


def _setting(name: str, choice: Choice) -> str:
    return f"{name} = {toml(choice.value)}  # {_mark(choice)}{comment(choice.why)}"


def _label_delay(choice: Choice) -> str:
    """The setting; a comment to be filled in where nothing in the graph tells it."""
    line = _setting("label_delay_days", choice)
    return line if choice.value else f"# {line.replace(toml(''), '30', 1)}"


def _mark(choice: Choice) -> str:
    return "" if choice.sure else "CHECK THIS: "


def toml(value: object) -> str:
    """Return a text or list as TOML has it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> str:
    """Return a text on one line; what a user's names hold can't end a comment."""
    return "".join(c if c.isprintable() else " " for c in text)
