"""Whether the audit store is migrated, has a model and its key; which nodes are in quarantine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.comparisons import comparisons_of
from ringfence.connector.store.migrate import is_new, require_sql
from ringfence.connector.store.models import active_manifest
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.sizes import table_sizes
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.inference.network_packages import require_network_packages
from ringfence.jobs.lifecycle.comparison import warnings_of
from ringfence.jobs.lifecycle.graph_benefit import VERDICTS, GraphBenefit
from ringfence.jobs.project.promise import differences_from_new, terms_in_force
from ringfence.jobs.project.promise_check import calibration_warnings, require_promise
from ringfence.jobs.schedule.triggers import times_per_year
from ringfence.jobs.setup.checks.late_classes import check_late_classes
from ringfence.jobs.setup.checks.lists import check_lists
from ringfence.jobs.setup.checks.own_files import check_key_files, check_model_files
from ringfence.jobs.setup.checks.sample import check_sample
from ringfence.jobs.setup.checks.seed_key import check_seed_key
from ringfence.jobs.setup.finding import Finding, attempt, from_error, not_yet
from ringfence.models.calibration.comparison import false_alarms_per_year

LARGEST_TABLES = 3  # whose sizes are named


def check_model(store: Store, settings: Settings) -> Iterator[Finding]:
    """A model is trained."""
    try:
        manifest = json.loads(active_manifest(store, settings.project))
    except ModelError as error:
        yield not_yet(error.found, error.next_step)
        return
    models = ProjectQueries(store, settings.project).models()
    yield Finding("ok", f"a model is trained; active: {manifest['version']}")
    try:
        require_network_packages(manifest["network"])
    except ConfigError as error:
        yield from_error(error)
    newer = [model.version for model in models if model.state == "candidate"]
    if newer:
        yield Finding(
            "ok",
            f"{len(newer)} candidates wait, the newest is {newer[-1]}",
            f'ringfence promote {newer[-1]} --reason "…", to take it into use',
        )
    states = [(model.version, model.state) for model in models]
    for sentence in warnings_of(comparisons_of(store, settings.project), states):
        yield Finding("warning", sentence, "ringfence models compare " + manifest["version"])
    yield from _check_benefit(manifest)
    terms = terms_in_force(settings.conformal, manifest)
    classified = settings.mapping().class_property
    yield attempt(
        "the model can promise what is configured",
        lambda: require_promise(settings.conformal, terms, manifest, classified),
    )
    for warning in calibration_warnings(terms):
        yield Finding("warning", warning[0], warning[1])
    yield _false_reports(settings)
    for difference in differences_from_new(settings.conformal, manifest):
        yield Finding("ok", f"promise: {difference}", "ringfence train, to have it")


def _check_benefit(manifest: JsonObject) -> Iterator[Finding]:
    """What the relationships bring to the model in use, as its training found out."""
    benefit = GraphBenefit.from_manifest(manifest)
    if benefit is None:
        return
    show = f"ringfence models show {manifest['version']}   (the fits without the graph)"
    if benefit.is_suspicious:
        yield Finding("warning", benefit.describe_leak(), show)
    elif benefit.verdict == "help":
        yield Finding("ok", VERDICTS["help"])
    else:
        yield Finding("warning", VERDICTS[benefit.verdict], show)


def _false_reports(settings: Settings) -> Finding:
    """How often runs say by chance alone that their nodes differ from the calibration nodes."""
    schedule = settings.schedule
    runs = times_per_year(schedule.time_of("score"), schedule.timezone, "score")
    rate = false_alarms_per_year(runs)
    often = f"in at most {rate:.3g} of {runs:,.0f} a year" if runs else "in at most 1 of 100"
    return Finding("ok", f"runs compare new nodes with calibration nodes, wrongly {often}")


def check_quarantine(store: Store, settings: Settings) -> Iterator[Finding]:
    """No node is in quarantine; else how many, by reason."""
    for row in ProjectQueries(store, settings.project).quarantine():
        text = f"{row.nodes} nodes are in quarantine: {row.reason}"
        yield Finding("warning", text, "correct them in the graph; every run reads them again")
    if odd := ProjectQueries(store, settings.project).odd_relationships():
        yield Finding(
            "warning",
            f"{len(odd)} relationships have no usable creation time, e.g. {odd[0]}",
            "correct them: each new one makes a run read all relationships of its type",
        )


def check_sizes(store: Store, settings: Settings) -> Iterator[Finding]:
    """How much room the tables take, all projects together."""
    del settings
    sizes = table_sizes(store)
    by_table: dict[str, int] = {}
    for table_size in sizes:
        by_table[table_size.table] = by_table.get(table_size.table, 0) + table_size.bytes
    indexes = sum(table_size.bytes for table_size in sizes if table_size.index)
    text = f"the audit store takes {sum(by_table.values()) / 1e6:,.1f} MB"
    if "" not in by_table:
        largest = sorted(by_table.items(), key=lambda item: (-item[1], item[0]))[:LARGEST_TABLES]
        named = ", ".join(f"{name} {size / 1e6:,.1f}" for name, size in largest)
        text += f" ({indexes / 1e6:,.1f} of them indexes; with theirs: {named})"
    yield Finding("ok", text)


MIGRATED_STORE_CHECKS: tuple[Callable[[Store, Settings], Iterator[Finding]], ...] = (
    check_model,
    check_late_classes,
    check_seed_key,
    check_key_files,
    check_model_files,
    check_sample,
    check_lists,
    check_quarantine,
    check_sizes,
)


def check_store(store: Store, settings: Settings) -> Iterator[Finding]:
    """Run every check of the store; those of its rows need the tables of this version."""
    if is_new(store):
        yield not_yet("the audit store has no tables", "ringfence migrate")
        return
    migrated = attempt(
        f"the audit store works ({store.engine.dialect.name})", lambda: require_sql(store)
    )
    yield migrated
    if migrated.level == "ok":
        for check in MIGRATED_STORE_CHECKS:
            yield from check(store, settings)
