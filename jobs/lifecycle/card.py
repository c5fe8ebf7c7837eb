"""`ringfence models show`: a model's card, as values; `card_page` writes it as a page.

Everything is read from the audit store: the manifest as it was sealed at the training, and what
became of the version since.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scipy.stats import beta

from ringfence.connector.json_types import JsonObject
from ringfence.connector.store import migrate
from ringfence.connector.store.corrections import newest_corrections
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.comparisons import StoredComparison, comparisons_of
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import ModelRecord
from ringfence.connector.times import format_time
from ringfence.jobs.lifecycle.comparison import holdout_report, newest_of
from ringfence.jobs.lifecycle.graph_benefit import VERDICTS, GraphBenefit
from ringfence.jobs.lifecycle.score_drift import score_distances
from ringfence.jobs.lifecycle.shadow_summary import ShadowSummary, read_shadows
from ringfence.jobs.lifecycle.versions import VersionSummary, choose_version, summarise
from ringfence.jobs.project.ancestors import WARM_START_KEY
from ringfence.jobs.project.columns.column_encoders import RELATED_KEY, column_facts
from ringfence.jobs.project.model_files import SCORER_CHOICE_KEY, STOPPED_BY_KEY
from ringfence.jobs.project.node_seed import SEED_KEY
from ringfence.jobs.project.promise import FIRST_TERMS, PROMISE_KEY

Rows = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a card: names and values."""

    title: str
    rows: Rows


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model version for its reviewers: what it is, what it may be used for, its history.

    `facts` has the same as JSON values, with the whole manifest.
    """

    version: str
    project: str
    state: str
    sections: tuple[Section, ...]
    facts: Mapping[str, Any]

    def as_json(self) -> JsonObject:
        """Return what `ringfence models show --json` prints."""
        return dict(self.facts)


def read_card(store: Store, project: str, version: str) -> ModelCard:
    """Return the card of a version, named whole or by its beginning."""
    migrate.require_sql(store)
    queries = ProjectQueries(store, project)
    models = {model.version: model for model in queries.models()}
    model = models[choose_version(list(models), version)]
    activations = queries.activations()
    done = queries.runs_by_model().get(model.version, (0, 0))
    summary = summarise(model, activations, queries.totals(), done)
    corrected = newest_corrections(store, project, model.version)
    life = tuple(
        (f"{use.how}, {format_time(use.at_ns)}", describe_use(use.reason, use.actor))
        for use in activations
        if use.version == model.version
    )
    drift = _drift(queries, model.version)
    newest = newest_of(comparisons_of(store, project), model.version)
    shadow = read_shadows(store, project).get(model.version)
    sections = (
        Section("Model", _model_rows(model)),
        Section("Data", _data_rows(model)),
        Section("How good it is", (*_metric_rows(model), *_holdout_rows(newest))),
        Section("What the relationships bring", _graph_rows(model)),
        Section("Promise", _promise_rows(model)),
        Section("In use", life or (("never", "the version is a candidate"),)),
        Section("Since then", _since_rows(summary, len(corrected), drift)),
        *_shadow_section(shadow),
        Section("Known limits", _limit_rows(model, summary)),
    )
    facts = {
        "version": model.version,
        "project": project,
        "state": model.state,
        "summary": replace(summary, shadow=shadow).as_json(),
        "corrected_calibration_nodes": len(corrected),
        "drift_of_scores": drift,
        "sections": {section.title: [list(row) for row in section.rows] for section in sections},
        "comparison": None if newest is None else holdout_report(newest).as_json(),
        "manifest": model.manifest,
    }
    return ModelCard(model.version, project, model.state, sections, facts)


def _model_rows(model: ModelRecord) -> Rows:
    manifest = model.manifest
    options = ", ".join(f"{name} {value}" for name, value in manifest.get("options", {}).items())
    rows = [
        ("version", model.version),
        ("state", model.state),
        ("trained", format_time(model.trained_ns)),
        ("network", f"{model.network} ({options})" if options else model.network),
        ("weights, SHA-256", model.weights_sha256 or "not recorded"),
        ("software", f"ringfence {manifest.get('software', 'unknown')}"),
        ("seed", str(manifest.get("seed", "unknown"))),
        ("seed key, digest", manifest.get(SEED_KEY) or "none: u comes from the seed"),
    ]
    if "best_epoch" in manifest:
        rows.append(("best epoch", str(manifest["best_epoch"])))
    if (stopped_by := manifest.get(STOPPED_BY_KEY)) is not None:
        rows.append(("training ended by", f"the {stopped_by} validation nodes"))
    if "recipe" in manifest:
        weighed = manifest["recipe"].get("class_weights") is not None
        rows.append(("rare classes weighed up", "yes" if weighed else "no"))
    if (choice := manifest.get(SCORER_CHOICE_KEY)) is not None:
        rows += _scorer_rows(choice)
    if (start := manifest.get(WARM_START_KEY)) is not None:
        began = start["from"] or f"random weights: {start['because']}"
        rows.append(("began with the weights of", began))
    if trials := (manifest.get("training") or {}).get("trials"):
        rows.append(("chosen on validation nodes", f"among {len(trials)} trials"))
    return tuple(rows)


def _scorer_rows(choice: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What `auto` tried on validation nodes, and what it left out."""
    tried = [
        (
            f"auto tried {scorer['name']}",
            f"log loss {scorer['log_loss']:.4f} ± {scorer['standard_error']:.4f} on "
            f"{choice['nodes']:,} validation nodes"
            + (
                "; taken"
                if scorer["name"] == choice["chosen"]
                else f"; {scorer['behind']:.4f} ± {scorer['behind_error']:.4f} more than "
                f"{choice['chosen']}"
            ),
        )
        for scorer in choice["tried"]
    ]
    return tried + [(f"auto left out {name}", why) for name, why in choice["left_out"].items()]


def _data_rows(model: ModelRecord) -> Rows:
    data = model.manifest.get("data", {})
    rows = [(f"{role} nodes", f"{count:,}") for role, count in model.counts.items()]
    if data:
        rows += [
            ("nodes in the graph", f"{data['nodes']:,}"),
            ("relationships", f"{data['relationships']:,}"),
            (
                "labelled nodes were created",
                f"{format_time(data['first_ns'])} to {format_time(data['last_ns'])}",
            ),
        ]
    counts = data.get("classes", {})
    rows += [
        (f"class {name}", f"{counts[name]:,} labelled nodes" if name in counts else "")
        for name in model.classes
    ]
    parts = model.manifest.get("mapping", {}).get("parts", {})
    rows += [(f"[graph] {name}", json.dumps(value)) for name, value in parts.items()]
    return (*rows, *_column_rows(column_facts(model.manifest)))


def _column_rows(facts: Mapping[str, Any]) -> Rows:
    """Columns of relationships with the kinds that they were encoded as, and what was left out."""
    related = [
        (f"column of {facts['schema']['relations'][each['relation']]['type']} relationships",
         f"{column['name']}, encoded as {column['kind']}")
        for each in facts.get(RELATED_KEY, ())
        for column in each["table"]["columns"]
    ]  # fmt: skip
    since = [
        (
            f"column of {label} nodes",
            f"{column['name']}, also as days since {column['options']['since']}",
        )
        for label, table in zip(
            facts.get("schema", {}).get("labels", ()), facts.get("encoders", ()), strict=False
        )
        for column in table["columns"]
        if column["options"].get("since") and ":" not in column["kind"]
    ]
    left_out = facts.get("left_out", {})
    return (
        *related,
        *since,
        *((f"column left out: {name}", why) for name, why in left_out.items()),
    )


def _metric_rows(model: ModelRecord) -> Rows:
    metrics = model.manifest.get("metrics")
    if not metrics:
        return (("not recorded", "the model was trained before its manifest kept metrics"),)
    names = {"validation_accuracy": "validation", "calibration_accuracy": "calibration"}
    return tuple(
        (f"accuracy, {role}", _describe_share(metrics[name], model.counts[role]))
        for name, role in names.items()
        if name in metrics
    )


def _graph_rows(model: ModelRecord) -> Rows:
    """The scorer beside the same one fitted with less of the graph."""
    benefit = GraphBenefit.from_manifest(model.manifest)
    if benefit is None:
        return (("not checked", "the training was asked not to, or knew no such check"),)
    rows = [
        ("verdict", VERDICTS[benefit.verdict]),
        (f"log loss on {benefit.nodes:,} validation nodes", f"{benefit.log_loss:.4f}"),
    ]
    rows += [
        (
            f"the same scorer on {other.name}",
            f"{other.log_loss:.4f}: the version gains {other.gain:+.4f} (95 % interval "
            f"{other.low:+.4f} to {other.high:+.4f})",
        )
        for other in benefit.others
    ]
    rows.append(("cost", f"{benefit.fits} more fits, {benefit.seconds:.1f} s"))
    if benefit.is_suspicious:
        rows.append(("suspected leak", benefit.describe_leak()))
    return tuple(rows)


def _describe_share(share: float, nodes: int) -> str:
    """A share of nodes with its exact 95 % interval.

    >>> _describe_share(0.9, 100)
    '0.900 (95 % interval 0.824 to 0.951) of 100 nodes'
    """
    if not nodes or not math.isfinite(share):
        return "not known"
    hits = round(share * nodes)
    low = 0.0 if hits == 0 else float(beta.ppf(0.025, hits, nodes - hits + 1))
    high = 1.0 if hits == nodes else float(beta.ppf(0.975, hits + 1, nodes - hits))
    return f"{share:.3f} (95 % interval {low:.3f} to {high:.3f}) of {nodes:,} nodes"


def _holdout_rows(newest: StoredComparison | None) -> Rows:
    """The version and what it was compared with, on the holdout, with 95 % intervals."""
    if newest is None:
        return (("on the holdout", "never compared"),)
    report = holdout_report(newest)
    rows = [
        (
            f"{row[0]}, on {report.nodes:,} nodes of the holdout",
            "; ".join(
                f"{name} {value}"
                for name, value in zip(report.columns[1:], row[1:], strict=True)
                if value
            ),
        )
        for row in report.rows
    ]
    rows += [("compared " + report.at, sentence) for sentence in report.sentences]
    return tuple(rows)


def _promise_rows(model: ModelRecord) -> Rows:
    terms = FIRST_TERMS.as_manifest() | dict(model.manifest.get(PROMISE_KEY, {}))
    evaluation = model.manifest.get("evaluation", {}).get("words", "not recorded")
    rows = [(name.replace("_", " "), _describe_term(value)) for name, value in terms.items()]
    return (*rows, ("time of evaluation", evaluation))


def _describe_term(value: object) -> str:
    """A setting as a person reads it: none, yes and no in place of Python's words."""
    return {"None": "none", "True": "yes", "False": "no"}.get(str(value), str(value))


def _since_rows(summary: VersionSummary, corrected: int, drift: float | None) -> Rows:
    coverage = (
        "no class of an evaluated node is known yet"
        if summary.coverage is None
        else f"{100 * summary.coverage:.1f} % of {summary.known:,} nodes of known class, verdict "
        f"{summary.verdict}"
    )
    return (
        ("runs", f"{summary.runs:,}"),
        ("nodes evaluated", f"{summary.evaluated:,}"),
        ("coverage", coverage),
        ("calibration nodes corrected since the training", f"{corrected:,}"),
        (
            "drift of the calibration scores",
            "no run yet"
            if drift is None
            else f"{drift:.3f} between its first and its last run (earth mover's distance)",
        ),
    )


def _shadow_section(shadow: ShadowSummary | None) -> tuple[Section, ...]:
    """What the version's shadow sets showed; nothing if it made none."""
    if shadow is None:
        return ()
    return (Section("In the shadow of another version", (("found", shadow.words),)),)


def _limit_rows(model: ModelRecord, summary: VersionSummary) -> Rows:
    rows = [
        (
            "what is promised",
            "coverage over nodes, not for a single node; a node's first set alone",
        ),
        ("classes", f"it knows {len(model.classes)}; a node of another class is always missed"),
    ]
    counts = model.manifest.get("data", {}).get("classes", {})
    if counts:
        rarest = min(counts, key=lambda name: counts[name])
        rows.append(("rarest class", f"{rarest}: {counts[rarest]:,} labelled nodes"))
    if summary.coverage is None:
        rows.append(("not yet seen", "its coverage on nodes that arrived after the training"))
    if "mapping" not in model.manifest:
        rows.append(("not bound", "a changed label, feature or relationship type is not noticed"))
    return tuple(rows)


def describe_use(reason: str, actor: str) -> str:
    """Return why a version was taken into use, and by whom.

    An actor that was edited in SQL is shown as it is; `verify` names the edit.

    >>> describe_use("better", '{"host":"a","verb":"promote"}'), describe_use("better", "me")
    ('better (by a, ringfence promote)', 'better (by me)')
    """
    try:
        who = json.loads(actor)
    except ValueError:
        who = actor
    if not who:
        return reason
    if not isinstance(who, dict):
        return f"{reason} (by {who})"
    user = f"{who['user']}, " if who.get("user") else ""
    return f"{reason} (by {user}{who.get('host', '')}, ringfence {who.get('verb', '')})"


def _drift(queries: ProjectQueries, version: str) -> float | None:
    """How far the calibration scores of a version's last run are from those of its first."""
    states = [state for state in queries.monitor_states() if state.model == version]
    distances = score_distances(states)
    return None if not distances else distances[-1].distance
