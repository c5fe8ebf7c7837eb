"""Whether the columns of a label are there, and of a kind that an encoder takes."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.mapping import ColumnMapping, NodeMapping
from ringfence.connector.neo4j.sample import LabelSample
from ringfence.jobs.setup.finding import Finding
from ringfence.models.encoders import EncoderRefused, infer_kind
from ringfence.models.encoders.registry import check_options

PROPERTIES_NAMED = 12


def check_columns(node: NodeMapping, sample: LabelSample) -> Iterator[Finding]:
    """Every column is there, and its values are of a kind that can be fed."""
    used = []
    for column in node.columns:
        findings = list(_check_column(node, column, sample))
        yield from findings
        if all(finding.level == "ok" for finding in findings):
            used.append(column.name)
    if used:
        yield Finding("ok", f"columns of {node.label}: {', '.join(used)}")


def _check_column(
    node: NodeMapping, column: ColumnMapping, sample: LabelSample
) -> Iterator[Finding]:
    property_ = sample.properties.get(column.name)
    table = f"[graph.columns.{node.label}]"
    if property_ is None:
        there = ", ".join(list(sample.properties)[:PROPERTIES_NAMED])
        yield Finding(
            "error",
            f"no sampled :{node.label} node has the column {column.name}; there are: {there}",
            f"take {column.name} out of the columns of {node.label}",
        )
        return
    if column.kind:
        yield from _check_kind(column, table)
        yield from _check_since(node, column, table)
        if column.kind == "vector" and len(property_.sizes) > 1:
            yield Finding(
                "error",
                f"{node.label}.{column.name} has lists of {len(property_.sizes)} lengths "
                f"({min(property_.sizes)} to {max(property_.sizes)}); a vector has one",
                f'{table}  {column.name} = "numbers"   (their summary)',
            )
        return
    proposal = infer_kind(property_.values)
    if not proposal.usable:
        yield Finding(
            "warning",
            f"{node.label}.{column.name} is of little use: {proposal.reason}",
            f'{table}  {column.name} = "leave"   (or a kind, to use it all the same)',
        )


def _check_since(node: NodeMapping, column: ColumnMapping, table: str) -> Iterator[Finding]:
    """The other date that days are counted from is a column too."""
    since = column.options.get("since") if ":" not in str(column.kind) else None
    if since and since not in node.column_names:
        yield Finding(
            "error",
            f"{node.label}.{column.name} is to be read as days since {since}, which is no column "
            f"of {node.label}; there are: {', '.join(node.column_names)}",
            f'{table}  {since} = "use", or take since out of the options of {column.name}',
        )


def _check_kind(column: ColumnMapping, table: str) -> Iterator[Finding]:
    try:
        check_options(str(column.kind), column.options)
    except EncoderRefused as error:
        yield Finding("error", f"column {column.name}: {error}", f"correct {table} {column.name}")
