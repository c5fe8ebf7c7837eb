"""`/metrics`: the numbers on the pages, for Prometheus."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from ringfence import __version__
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.auditing.shortfalls import find_shortfalls

VERDICTS = ("kept", "watch", "broken", "not enough known yet")
STATES = ("ok", "pending", "firing", "no data")


def exposition(queries: ProjectQueries) -> bytes:
    """Return all metrics of a project in Prometheus' text form."""
    registry = CollectorRegistry()

    def gauge(name: str, text: str, value: float | None, **labels: str) -> None:
        if value is None:
            return
        names: Sequence[str] = ("project", *labels)
        known = gauges.get(name) or Gauge(f"ringfence_{name}", text, names, registry=registry)
        gauges[name] = known
        known.labels(queries.project, *labels.values()).set(value)

    gauges: dict[str, Gauge] = {}
    gauge("build_info", "Version of ringfence", 1, version=__version__)
    for name, value in queries.counts().as_dict().items():
        gauge(f"nodes_{name}", f"Nodes {name} so far", value)
    total = queries.total()
    if total:
        gauge("coverage_ratio", "Share of known nodes whose set held the class", total.coverage)
        gauge("coverage_promised_ratio", "1 - alpha", 1 - total.alpha)
        gauge("coverage_band_low_ratio", "Low end of the usual band", total.low)
        gauge("coverage_anytime_low_ratio", "The anytime bound", total.anytime_low)
        gauge("coverage_p_value", "p-value of one look", total.p_value)
        gauge("coverage_anytime_p_value", "p-value of all looks", total.anytime_p)
        gauge("set_size_mean", "Average set size", total.mean_size)
        gauge("unseen_classes", "Known nodes of a class never seen in training", total.unseen)
        gauge("label_bias", "Largest standardised difference of known nodes", total.bias)
        for verdict in VERDICTS:
            now = total.verdict == verdict
            gauge("verdict", "The verdict over all runs", now, verdict=verdict)
    for row in queries.own_promises():
        if total is None or row.model != total.model or not row.first_alpha:
            continue
        which = {row.slice: row.name}
        kind = row.slice
        gauge(f"{kind}_coverage_ratio", f"Share covered of a {kind}", row.coverage, **which)
        gauge(f"{kind}_promised_ratio", f"1 - alpha of a {kind}", 1 - row.alpha, **which)
        gauge(f"{kind}_anytime_low_ratio", f"Anytime bound of a {kind}", row.anytime_low, **which)
        gauge(f"{kind}_anytime_p_value", f"p-value of all looks, {kind}", row.anytime_p, **which)
        for verdict in VERDICTS:
            now = row.verdict == verdict
            gauge(f"{kind}_verdict", f"Verdict of a {kind}", now, **which, verdict=verdict)
    named = [*queries.named("class"), *queries.named("group")]
    short = {(row.slice, row.name) for row in find_shortfalls(named)}
    for row in named:
        of = {"class": "", "group": ""} | {row.slice: row.name}
        below = (row.slice, row.name) in short
        gauge("slice_coverage_ratio", "Coverage of a class or group", row.coverage, **of)
        gauge("slice_promised_ratio", "1 - alpha, of it or of all nodes", 1 - row.alpha, **of)
        gauge("slice_known_nodes", "Its nodes of known class", row.known, **of)
        gauge("slice_set_size_mean", "Average size of its sets", row.mean_size, **of)
        gauge("slice_far_below_promise", "Whether it is covered far below", below, **of)
    runs = queries.runs(last=1)
    if runs:
        last = runs[-1]
        gauge("last_run_timestamp_seconds", "When", last.decided_ns / NANOSECONDS)
        gauge("last_run_number", "Number of the last run", last.seq)
        gauge("last_run_evaluated", "Nodes it evaluated", last.n_evaluated)
        gauge("threshold", "Threshold of the last run", last.threshold)
        gauge("calibration_nodes", "Calibration nodes of the last run", last.n_calibration)
    unusable = sum(reason.nodes for reason in queries.quarantine())
    gauge("quarantine_nodes", "Unusable nodes", unusable)
    gauge("chain_entries", "Entries of the audit chain", queries.chain_length())
    for alarm in queries.alarms():
        for state in STATES:
            gauge("alarm", "State of an alarm", alarm.state == state, rule=alarm.rule, state=state)
    return generate_latest(registry)
