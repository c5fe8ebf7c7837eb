"""Whether the memory of this machine is enough for the graph."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.errors import RingfenceError
from ringfence.connector.neo4j.read.incremental import feature_width
from ringfence.connector.neo4j.read.watermark import count_relationships
from ringfence.jobs.setup import memory
from ringfence.jobs.setup.checks.label import LabelInGraph
from ringfence.jobs.setup.finding import Finding

CLASSES_WHERE_UNKNOWN = 2


def check_memory(subject: LabelInGraph) -> Iterator[Finding]:
    """Predict what scoring and training need from the counts of the graph."""
    mapping = subject.mapping
    try:
        width = feature_width(subject.graph, mapping)
    except RingfenceError:
        return  # `check_features` has said it
    class_ = subject.find_property(mapping.class_property)
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
