"""Whether the memory of this machine is enough for the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ringfence.connector.errors import RingfenceError
from ringfence.connector.mapping import GraphMapping, NodeMapping
from ringfence.connector.mirror.format import MAX_NODES, MAX_RELATIONSHIP_TYPES
from ringfence.connector.neo4j.read.properties import feature_width
from ringfence.connector.neo4j.read.watermark import count_relationships
from ringfence.connector.neo4j.sample import LabelSample
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project import memory
from ringfence.jobs.project.columns.column_encoders import schema_of
from ringfence.jobs.project.columns.fit import choose_columns
from ringfence.jobs.setup.checks.label import LabelInGraph
from ringfence.jobs.setup.finding import Finding
from ringfence.models.encoders import EncoderRefused, fit_table
from ringfence.models.training.typed_memory import TrainingSize, choose_batch_size, predict_bytes

CLASSES_WHERE_UNKNOWN = 2
NEARLY_FULL = 0.8  # of the nodes that a mirror can number: time to plan
TRAINED_SHARE = 0.7  # of the classified nodes, at most: train and validation


def check_memory(subject: LabelInGraph) -> Iterator[Finding]:
    """Predict what scoring and training need from the counts of the graph."""
    mapping = subject.mapping
    try:
        width = feature_width(subject.graph, mapping)
    except RingfenceError:
        return  # `check_features` has said it
    class_ = subject.find_property(mapping.class_property)
    yield from check_limits(subject.view.count, len(mapping.relations))
    need = memory.predict(
        subject.view.count,
        count_relationships(subject.graph, mapping),
        width,
        subject.settings.model.hidden,
        class_.distinct if class_ else CLASSES_WHERE_UNKNOWN,
        class_.share if class_ else 0.0,
    )
    text = (
        f"scoring needs about {memory.format_bytes(need.score)} of memory, training "
        f"{memory.format_bytes(need.train)}; mirror and tables "
        f"{memory.format_bytes(need.disk)} of disk"
    )
    free = memory.available()
    if max(need.score, need.train) > free:
        yield Finding(
            "warning",
            f"{text}; {memory.format_bytes(free)} of memory are free",
            "use a machine with more memory, a smaller [model] hidden, or fewer labelled nodes",
        )
    else:
        yield Finding("ok", text)


def check_limits(nodes: int, types: int) -> Iterator[Finding]:
    """Say how large a graph one mirror can hold, and how large this one is."""
    text = (
        f"{nodes:,} nodes and {types} relationship types; one mirror holds at most "
        f"{MAX_NODES:,} and {MAX_RELATIONSHIP_TYPES}"
    )
    if nodes > MAX_NODES or types > MAX_RELATIONSHIP_TYPES:
        advice = "map a smaller label or fewer types, or divide the graph into several projects"
        yield Finding("error", text, advice)
    elif nodes > NEARLY_FULL * MAX_NODES:
        yield Finding("warning", text, "divide the graph into several projects before it is full")
    else:
        yield Finding("ok", text)


def check_typed_memory(
    settings: Settings,
    mapping: GraphMapping,
    samples: Mapping[str, LabelSample],
    relationships: Sequence[int],
) -> Iterator[Finding]:
    """Predict what training on several labels needs, from counts and sampled columns."""
    counts = [samples[node.label].count if node.label in samples else 0 for node in mapping.nodes]
    size = TrainingSize(
        schema_of(mapping),
        [round(counts[0] * TRAINED_SHARE), *counts[1:]],
        [_width(node, samples.get(node.label)) for node in mapping.nodes],
        relationships,
        settings.model.hidden,
        settings.model.layers,
    )
    yield from check_limits(sum(counts), len(mapping.relations))
    batch_size = choose_batch_size(size, settings.model.fixed_batch_size)
    needed = predict_bytes(size, batch_size) + memory.BASE_BYTES
    how = f"batches of {batch_size}" if batch_size else "full passes"
    text = f"training needs about {memory.format_bytes(needed)} of memory ({how})"
    free = memory.available()
    if needed > free:
        yield Finding(
            "warning",
            f"{text}; {memory.format_bytes(free)} are free",
            "[model] batch_size = 512, a smaller hidden, or fewer columns",
        )
    else:
        yield Finding("ok", text)


def _width(node: NodeMapping, sample: LabelSample | None) -> int:
    """Encoded columns of a label; a vector has as many as its lists are long."""
    if sample is None:
        return 1
    values = {
        column.name: sample.properties[column.name].values
        for column in node.columns
        if column.name in sample.properties
    }
    choices, _ = choose_columns(node.label, node.columns, values)
    try:
        width = fit_table(values, choices).width
    except EncoderRefused:
        return 1  # `check_columns` has said it
    long = [
        sample.properties[name].sizes for name, choice in choices.items() if choice.kind == "vector"
    ]
    return width + sum(max(sizes, default=0) for sizes in long)
