"""`/metrics`: the numbers on the pages, for Prometheus.

`METRICS` is every metric with its labels and meaning; the reference of the documentation is made
from it. A new one is a line there and a call of `Exposition.set`.
"""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from ringfence import __version__
from ringfence.connector.records import StoredCoverage
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.auditing.list_audit import audit_lists
from ringfence.jobs.auditing.shortfalls import find_shortfalls
from ringfence.jobs.views.sample import read_sample_status

VERDICTS = ("kept", "watch", "broken", "not enough known yet", "no verdict")
STATES = ("ok", "pending", "firing", "no data")
OUTCOMES = ("done", "alarm", "failed", "held", "stopped")


@dataclass(frozen=True, slots=True)
class Metric:
    """What a metric means, and its labels besides `project`."""

    text: str
    labels: tuple[str, ...] = ()


METRICS: dict[str, Metric] = {
    "build_info": Metric("Version of ringfence", ("version",)),
    "nodes_evaluated": Metric("Nodes evaluated so far"),
    "nodes_known": Metric("Nodes known so far"),
    "nodes_unknown": Metric("Nodes unknown so far"),
    "coverage_ratio": Metric("Share of known nodes whose set held the class"),
    "coverage_promised_ratio": Metric("1 - alpha"),
    "coverage_band_low_ratio": Metric("Low end of the usual band"),
    "coverage_anytime_low_ratio": Metric("The anytime bound"),
    "coverage_p_value": Metric("p-value of one look"),
    "coverage_anytime_p_value": Metric("p-value of all looks"),
    "set_size_mean": Metric("Average set size"),
    "unseen_classes": Metric("Known nodes of a class never seen in training"),
    "label_bias": Metric("Largest standardised difference of known nodes"),
    "verdict": Metric("The verdict over all runs: 1 at the one that holds", ("verdict",)),
    "sample_nodes": Metric("Nodes that runs drew for the audit sample"),
    "sample_unknown_nodes": Metric("Those of them whose class is not known yet"),
    "sample_coverage_low_ratio": Metric("Coverage of the sample, unknown nodes counted as missed"),
    "sample_coverage_high_ratio": Metric("The same, unknown nodes counted as covered"),
    "list_nodes": Metric("Nodes that runs put on a list", ("list", "promised")),
    "list_known_nodes": Metric("Those of them of known class", ("list", "promised")),
    "list_wrong_ratio": Metric("Share of these that are wrong", ("list", "promised")),
    "list_verdict": Metric(
        "The verdict on a list: 1 at the one that holds", ("list", "promised", "verdict")
    ),
    "sample_verdict": Metric("The verdict on the sample: 1 at the one that holds", ("verdict",)),
    "class_coverage_ratio": Metric("Share covered of a class", ("class",)),
    "class_promised_ratio": Metric("1 - alpha of a class", ("class",)),
    "class_anytime_low_ratio": Metric("Anytime bound of a class", ("class",)),
    "class_anytime_p_value": Metric("p-value of all looks, class", ("class",)),
    "class_verdict": Metric("Verdict of a class", ("class", "verdict")),
    "group_coverage_ratio": Metric("Share covered of a group", ("group",)),
    "group_promised_ratio": Metric("1 - alpha of a group", ("group",)),
    "group_anytime_low_ratio": Metric("Anytime bound of a group", ("group",)),
    "group_anytime_p_value": Metric("p-value of all looks, group", ("group",)),
    "group_verdict": Metric("Verdict of a group", ("group", "verdict")),
    "slice_coverage_ratio": Metric("Coverage of a class or group", ("class", "group")),
    "slice_promised_ratio": Metric("1 - alpha, of it or of all nodes", ("class", "group")),
    "slice_known_nodes": Metric("Its nodes of known class", ("class", "group")),
    "slice_set_size_mean": Metric("Average size of its sets", ("class", "group")),
    "slice_far_below_promise": Metric("Whether it is covered far below", ("class", "group")),
    "last_run_timestamp_seconds": Metric("When the last run was decided"),
    "last_run_number": Metric("Number of the last run"),
    "last_run_evaluated": Metric("Nodes that the last run evaluated"),
    "last_run_waiting": Metric("Nodes that wait for their time or a neighbour"),
    "last_run_step_seconds": Metric("Seconds of a step of the last finished run", ("step",)),
    "threshold": Metric("Threshold of the last run"),
    "calibration_nodes": Metric("Calibration nodes of the last run"),
    "graph_nodes": Metric("Nodes of the graph in the last run"),
    "graph_relationships": Metric("Relationships of the graph in the last run"),
    "last_audit_timestamp_seconds": Metric("When the last audit was"),
    "quarantine_nodes": Metric("Unusable nodes"),
    "chain_entries": Metric("Entries of the audit chain"),
    "alarm": Metric("State of an alarm: 1 at the one that holds", ("rule", "state")),
    "job_last_start_timestamp_seconds": Metric("When a scheduled job last began", ("job",)),
    "job_last_duration_seconds": Metric("Seconds that a job last took", ("job",)),
    "job_next_timestamp_seconds": Metric("When a scheduled job is due", ("job",)),
    "job_failures_in_a_row": Metric("How often a job failed since it last ended well", ("job",)),
    "job_outcome": Metric("How a job last ended: 1 at the one that holds", ("job", "outcome")),
}


class Exposition:
    """The gauges of one project; a value of None is left out."""

    def __init__(self, project: str) -> None:
        self.project = project
        self.registry = CollectorRegistry()
        self.gauges: dict[str, Gauge] = {}

    def set(self, name: str, value: float | None, **labels: str) -> None:
        """Set a metric of `METRICS`; every label that it has must be given."""
        if value is None:
            return
        metric = METRICS[name]
        if name not in self.gauges:
            self.gauges[name] = Gauge(
                f"ringfence_{name}", metric.text, ("project", *metric.labels),
                registry=self.registry,
            )  # fmt: skip
        self.gauges[name].labels(project=self.project, **labels).set(value)

    def choose(
        self, name: str, label: str, chosen: str, among: tuple[str, ...], **more: str
    ) -> None:
        """Set a metric to 1 where its label has the chosen value and to 0 at the others."""
        for value in among:
            self.set(name, value == chosen, **more, **{label: value})


def exposition(queries: ProjectQueries) -> bytes:
    """Return all metrics of a project in Prometheus' text form."""
    out = Exposition(queries.project)
    out.set("build_info", 1, version=__version__)
    for name, value in queries.counts().as_dict().items():
        out.set(f"nodes_{name}", value)
    total = queries.total()
    if total:
        _total(out, total)
    _sample(out, queries)
    _lists(out, queries)
    _own_promises(out, queries, total)
    _slices(out, queries)
    _last_run(out, queries)
    _jobs(out, queries)
    mark = queries.audit_mark()
    out.set("last_audit_timestamp_seconds", mark.audited_ns / NANOSECONDS if mark else None)
    out.set("quarantine_nodes", sum(reason.nodes for reason in queries.quarantine()))
    out.set("chain_entries", queries.chain_length())
    for alarm in queries.alarms():
        out.choose("alarm", "state", alarm.state, STATES, rule=alarm.rule)
    return generate_latest(out.registry)


def _total(out: Exposition, total: StoredCoverage) -> None:
    out.set("coverage_ratio", total.coverage)
    out.set("coverage_promised_ratio", 1 - total.alpha)
    out.set("coverage_band_low_ratio", total.low)
    out.set("coverage_anytime_low_ratio", total.anytime_low)
    out.set("coverage_p_value", total.p_value)
    out.set("coverage_anytime_p_value", total.anytime_p)
    out.set("set_size_mean", total.mean_size)
    out.set("unseen_classes", total.unseen)
    out.set("label_bias", total.bias)
    out.choose("verdict", "verdict", total.verdict, VERDICTS)


def _sample(out: Exposition, queries: ProjectQueries) -> None:
    sample = read_sample_status(queries)
    if sample is None:
        return
    low, high = sample.bounds or (None, None)
    out.set("sample_nodes", sample.counts.nodes)
    out.set("sample_unknown_nodes", sample.counts.unknown)
    out.set("sample_coverage_low_ratio", low)
    out.set("sample_coverage_high_ratio", high)
    out.choose("sample_verdict", "verdict", sample.verdict, VERDICTS)


def _lists(out: Exposition, queries: ProjectQueries) -> None:
    for row in audit_lists(queries.store, queries.project):
        if row.slice != "total":
            continue
        which = {"list": row.terms.name, "promised": f"{row.terms.may_be_wrong:g}"}
        out.set("list_nodes", row.listed, **which)
        out.set("list_known_nodes", row.known, **which)
        out.set("list_wrong_ratio", row.pooled, **which)
        out.choose("list_verdict", "verdict", row.verdict, VERDICTS, **which)


def _own_promises(out: Exposition, queries: ProjectQueries, total: StoredCoverage | None) -> None:
    for row in queries.own_promises():
        if total is None or row.model != total.model or not row.first_alpha:
            continue
        kind, which = row.slice, {row.slice: row.name}
        out.set(f"{kind}_coverage_ratio", row.coverage, **which)
        out.set(f"{kind}_promised_ratio", 1 - row.alpha, **which)
        out.set(f"{kind}_anytime_low_ratio", row.anytime_low, **which)
        out.set(f"{kind}_anytime_p_value", row.anytime_p, **which)
        out.choose(f"{kind}_verdict", "verdict", row.verdict, VERDICTS, **which)


def _slices(out: Exposition, queries: ProjectQueries) -> None:
    named = [*queries.named("class"), *queries.named("group")]
    short = {(row.slice, row.name) for row in find_shortfalls(named)}
    for row in named:
        of = {"class": "", "group": ""} | {row.slice: row.name}
        out.set("slice_coverage_ratio", row.coverage, **of)
        out.set("slice_promised_ratio", 1 - row.alpha, **of)
        out.set("slice_known_nodes", row.known, **of)
        out.set("slice_set_size_mean", row.mean_size, **of)
        out.set("slice_far_below_promise", (row.slice, row.name) in short, **of)


def _last_run(out: Exposition, queries: ProjectQueries) -> None:
    runs = queries.runs(last=1)
    if not runs:
        return
    last = runs[-1]
    out.set("last_run_timestamp_seconds", last.decided_ns / NANOSECONDS)
    out.set("last_run_number", last.seq)
    out.set("last_run_evaluated", last.n_evaluated)
    out.set("last_run_waiting", last.n_waiting)
    out.set("threshold", last.threshold)
    out.set("calibration_nodes", last.n_calibration)
    out.set("graph_nodes", last.n_nodes)
    out.set("graph_relationships", last.n_relationships)
    for step, seconds in last.timings.items():
        out.set("last_run_step_seconds", seconds, step=step)


def _jobs(out: Exposition, queries: ProjectQueries) -> None:
    for job in queries.schedule():
        started, ended = job.started_ns, job.ended_ns
        out.set("job_last_start_timestamp_seconds", _seconds(started), job=job.job)
        if started is not None and ended is not None and ended >= started:
            out.set("job_last_duration_seconds", _seconds(ended - started), job=job.job)
        out.set("job_next_timestamp_seconds", _seconds(job.due_ns), job=job.job)
        out.set("job_failures_in_a_row", job.failures, job=job.job)
        if job.outcome:
            out.choose("job_outcome", "outcome", job.outcome, OUTCOMES, job=job.job)


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / NANOSECONDS
