"""`score` and `audit` as OpenLineage events: what was read, what was written, and coverage.

Both events of a run, START and COMPLETE or FAIL, are sent when it has ended: a receiver that is
away costs a run at most `[telemetry] timeout_seconds`, and no set. They hold names of the
configuration, counts and coverage by class: no key, no message and no other value of the graph.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ringfence import __version__
from ringfence.connector.extras import install_command

if TYPE_CHECKING:
    from ringfence.jobs.config.settings import Settings
    from ringfence.jobs.telemetry.traced_run import TracedRun

__all__ = ["lineage_events", "send_lineage"]

NAMESPACE = "ringfence"
PRODUCER = f"urn:ringfence:{__version__}"
NOT_INSTALLED = f"the extra is not installed: {install_command('openlineage')}"
BOLT_PORT = 7687
NANOSECONDS = 10**9


def send_lineage(run: TracedRun, settings: Settings) -> str | None:
    """Send the events of a run that has ended; return why they were not delivered, or None."""
    try:
        send = _sender(settings)
        for event in lineage_events(run, settings):
            send(event)
    except ImportError:
        return NOT_INSTALLED
    except Exception as error:  # noqa: BLE001 - whatever a receiver does, the run is done
        return type(error).__name__
    return None


def lineage_events(run: TracedRun, settings: Settings) -> list[Any]:
    """Return the START event of a run, and the one of its end."""
    from openlineage.client import event_v2 as lineage
    from openlineage.client.facet_v2 import error_message_run, processing_engine_run

    engine = processing_engine_run.ProcessingEngineRunFacet(version=__version__, name=NAMESPACE)
    facets: dict[str, Any] = {"processing_engine": engine, "ringfence_run": _run_facet(run)}
    if run.error:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(run.error, "PYTHON")
    run_id = str(uuid.UUID(run.run_id))
    job = lineage.Job(NAMESPACE, f"{settings.project}.{run.verb}")
    ended = lineage.RunState.FAIL if run.error else lineage.RunState.COMPLETE
    inputs = [_graph_dataset(lineage.InputDataset, settings, _label(settings))]
    outputs = [] if run.error else [_output(run, settings)]

    def event(state: Any, at_ns: int, **more: Any) -> Any:
        return lineage.RunEvent(
            eventTime=datetime.fromtimestamp(at_ns / NANOSECONDS, UTC).isoformat(),
            run=lineage.Run(run_id, facets if more else {"processing_engine": engine}),
            job=job,
            eventType=state,
            producer=PRODUCER,
            inputs=inputs,
            **more,
        )

    return [
        event(lineage.RunState.START, run.start_ns),
        event(ended, run.end_ns, outputs=outputs),
    ]


def _run_facet(run: TracedRun) -> Any:
    from openlineage.client.generated.base import RunFacet

    facts = {"verb": run.verb, **run.facts}
    return RunFacet().with_additional_properties(**facts)


def _output(run: TracedRun, settings: Settings) -> Any:
    """The sets of a run with their number, or the coverage that an audit wrote."""
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics
    from openlineage.client.generated.base import OutputDatasetFacet

    if run.verb == "score":
        output = _graph_dataset(OutputDataset, settings, "MAY_BE")
        written = statistics.OutputStatisticsOutputDatasetFacet(
            rowCount=int(run.facts.get("evaluated", 0))
        )
        output.outputFacets = {"outputStatistics": written}
        return output
    output = _graph_dataset(OutputDataset, settings, "CoverageAudit")
    facet = OutputDatasetFacet().with_additional_properties(slices=list(run.coverage))
    output.outputFacets = {"ringfence_coverage": facet}
    return output


def _graph_dataset(kind: Callable[..., Any], settings: Settings, name: str) -> Any:
    uri = settings.neo4j.uri
    parts = urlsplit(uri)
    port = f":{parts.port or BOLT_PORT}"
    namespace = "neo4j://embedded" if uri == "embedded" else f"neo4j://{parts.hostname}{port}"
    return kind(namespace, f"{settings.neo4j.database or 'home'}.{name}")


def _label(settings: Settings) -> str:
    return settings.mapping().classified.label


def _sender(settings: Settings) -> Callable[[Any], object]:
    telemetry = settings.telemetry
    if not telemetry.lineage.startswith(("http://", "https://")):
        return _file_writer(Path(telemetry.lineage))
    from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport

    config = HttpConfig(
        url=telemetry.lineage, timeout=telemetry.timeout_seconds / 2, retry={"total": 0}
    )
    if telemetry.lineage_key is not None:
        key = telemetry.lineage_key.get_secret_value()
        config.auth = ApiKeyTokenProvider({"apiKey": key})
    return HttpTransport(config).emit


def _file_writer(path: Path) -> Callable[[Any], object]:
    from openlineage.client.serde import Serde

    def write(event: Any) -> None:
        with path.open("a", encoding="utf-8") as lines:
            lines.write(Serde.to_json(event) + "\n")

    return write
