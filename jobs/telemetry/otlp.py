"""A run as an OpenTelemetry trace, sent over HTTP when the run has ended.

The trace has the run's id, its root span is the verb, its children the steps. Spans hold names of
our own, counts and the name of an exception: no message and no value of the graph.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ringfence import __version__
from ringfence.jobs.telemetry.span_attributes import (
    SERVICE,
    resource_attributes,
    root_attributes,
    step_attributes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ringfence.jobs.config.settings import Settings
    from ringfence.jobs.config.telemetry import TelemetrySettings
    from ringfence.jobs.telemetry.traced_run import TracedRun

NOT_INSTALLED = "the extra is not installed: pip install 'ringfence[telemetry]'"


def send_trace(run: TracedRun, settings: Settings) -> str | None:
    """Send the trace of a run that has ended; return why it was not delivered, or None."""
    try:
        spans = _spans(run, settings)
        return _export(spans, settings.telemetry)
    except ModuleNotFoundError:
        return NOT_INSTALLED
    except Exception as error:  # noqa: BLE001 - whatever a receiver does, the run is done
        return type(error).__name__


def _spans(run: TracedRun, settings: Settings) -> list[Any]:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.trace import Status, StatusCode, set_span_in_context

    class OwnTraceId(RandomIdGenerator):
        """Gives a trace the id of its run."""

        def generate_trace_id(self) -> int:
            return int(run.run_id, 16)

    kept = InMemorySpanExporter()
    provider = TracerProvider(
        resource=Resource.create(resource_attributes(run)),
        id_generator=OwnTraceId(),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer(SERVICE, __version__)
    root = tracer.start_span(f"ringfence {run.verb}", start_time=run.start_ns)
    inside = set_span_in_context(root)
    for step in run.steps:
        span = tracer.start_span(
            step.name,
            context=inside,
            start_time=step.start_ns,
            attributes=step_attributes(step.name, settings),
        )
        span.end(end_time=step.end_ns)
    root.set_attributes(root_attributes(run))
    if run.error:
        root.set_status(Status(StatusCode.ERROR, run.error))
    root.end(end_time=run.end_ns)
    return list(kept.get_finished_spans())


def _export(spans: list[Any], telemetry: TelemetrySettings) -> str | None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    # its own lines name the receiver's answer, and come once per attempt
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    exporter = OTLPSpanExporter(
        endpoint=telemetry.endpoint,
        headers=_headers(telemetry),
        timeout=telemetry.timeout_seconds,
    )
    try:
        delivered = exporter.export(spans) is SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return None if delivered else "the receiver did not take it"


def _headers(telemetry: TelemetrySettings) -> Mapping[str, str] | None:
    """The configured headers, as OpenTelemetry writes them in a variable."""
    if telemetry.headers is None:
        return None
    pairs = (pair.partition("=") for pair in telemetry.headers.get_secret_value().split(","))
    return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs if name}
