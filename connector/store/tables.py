"""The SQL audit store's tables; the revisions in migrations/sql create the same (a test compares).

Times are integer nanoseconds since 1970 (PostgreSQL would round a timestamp to microseconds).
JSON is text written with `allow_nan=False`: SQLite would turn NaN into NULL without a word."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from ringfence.connector.records import NO_OPTIONS
from ringfence.connector.store.audit_chain.tables import key_salt as key_salt
from ringfence.connector.store.calibration.tables import joined as joined
from ringfence.connector.store.calibration.tables import monitor_input as monitor_input
from ringfence.connector.store.graph.database import graph_database as graph_database
from ringfence.connector.store.lifecycle.tables import activation as activation
from ringfence.connector.store.lifecycle.tables import comparison as comparison
from ringfence.connector.store.retention.tables import removal as removal
from ringfence.connector.store.shadow.tables import consulted as consulted
from ringfence.connector.store.shadow.tables import shadow_coverage as shadow_coverage
from ringfence.connector.store.shadow.tables import shadow_run as shadow_run
from ringfence.connector.store.shadow.tables import shadow_set as shadow_set
from ringfence.connector.store.thresholds.tables import further_set as further_set
from ringfence.connector.store.thresholds.tables import metadata as metadata
from ringfence.connector.store.thresholds.tables import partial_index
from ringfence.connector.store.thresholds.tables import threshold as threshold
from ringfence.connector.store.worklist.tables import mark as mark
from ringfence.connector.store.worklist.tables import worklist_entry as worklist_entry

lease = Table(
    "lease",
    metadata,
    Column("project", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("expires_ns", BigInteger, nullable=False),
    Column("watermark_ns", BigInteger),
    Column("next_seq", BigInteger, nullable=False),
)
"""One row per project: who may write, up to where the graph was read, the next run's number."""

model = Table(
    "model",
    metadata,
    Column("project", Text),
    Column("version", Text),
    Column("trained_ns", BigInteger, nullable=False),
    Column("manifest", Text, nullable=False),
    PrimaryKeyConstraint("project", "version"),
)
"""A trained model's manifest as written beside its weights."""

member = Table(
    "member",
    metadata,
    Column("project", Text),
    Column("version", Text),
    Column("node_key", Text),
    Column("role", Text, nullable=False),
    Column("class_index", Integer, nullable=False),
    Column("created_ns", BigInteger),
    PrimaryKeyConstraint("project", "version", "node_key"),
    ForeignKeyConstraint(["project", "version"], ["model.project", "model.version"]),
    CheckConstraint(
        "role IN ('train', 'validation', 'calibration', 'holdout')", name="member_role"
    ),
    Index("member_by_role", "project", "version", "role"),
)
"""The labelled nodes a model version was trained, stopped and is calibrated with, or compared on.

`created_ns` is the node's creation time at the training (older models have none): a node that has
its key later, with another time, is another node."""

correction = Table(
    "correction",
    metadata,
    Column("project", Text),
    Column("version", Text),
    Column("node_key", Text),
    Column("noticed_ns", BigInteger),
    Column("was", Text),
    Column("label", Text),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("project", "version", "node_key", "noticed_ns"),
    ForeignKeyConstraint(
        ["project", "version", "node_key"],
        ["member.project", "member.version", "member.node_key"],
    ),
)
"""Classes of calibration nodes that changed in the graph after the training; the newest row counts.

Without a `label`, or with a class that the model never saw, the node is out of the calibration."""

run = Table(
    "run",
    metadata,
    Column("project", Text),
    Column("seq", BigInteger),
    Column("state", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("started_ns", BigInteger, nullable=False),
    Column("decided_ns", BigInteger),
    Column("applied_ns", BigInteger),
    Column("watermark_from_ns", BigInteger),
    Column("watermark_to_ns", BigInteger),
    Column("rule", Text, nullable=False),
    Column("score", Text, nullable=False),
    Column("alpha", Double, nullable=False),
    Column("threshold", Double),
    Column("threshold_node", Double),
    Column("threshold_edge", Double),
    Column("threshold_naive", Double),
    Column("n_calibration", BigInteger, nullable=False),
    Column("effective_calibration", Double, nullable=False),
    Column("n_evaluated", BigInteger, nullable=False),
    Column("n_waiting", BigInteger, nullable=False),
    Column("n_already_known", BigInteger, nullable=False),
    Column("n_quarantined", BigInteger, nullable=False),
    Column("n_nodes", BigInteger, nullable=False),
    Column("n_relationships", BigInteger, nullable=False),
    Column("model", Text, nullable=False),
    Column("config", Text, nullable=False),
    Column("software", Text, nullable=False),
    Column("notes", Text, nullable=False),
    Column("timings", Text, nullable=False),
    Column("calibration_scores", Text),
    Column("watch", Text),
    Column("options", Text, nullable=False, server_default=NO_OPTIONS),
    Column("alphas", Text),
    Column("level", Double),
    Column("lowest_level", Double),
    Column("n_thresholds", BigInteger),
    Column("promise", Text, nullable=False, server_default="marginal"),
    Column("calibration_set", Text, nullable=False, server_default="frozen"),
    Column("adapt", Boolean, nullable=False, server_default=text("false")),
    Column("levels", Text),
    Column("weights", Text, nullable=False, server_default="none"),
    Column("shift", Text),
    Column("mean_size_naive", Double),
    Column("lists", Text),
    PrimaryKeyConstraint("project", "seq"),
    CheckConstraint("state IN ('started', 'decided', 'applied')", name="run_state"),
    Index("run_by_time", "project", "decided_ns", "seq"),
)
"""One scoring run. A threshold of NULL is -infinity: nothing can be excluded, the full set.

`threshold` is NULL too where the run has several (`n_thresholds`): the table `threshold` has them.
`calibration_scores` are quantiles of the calibration scores on its graph, as JSON; `watch` is the
exchangeability monitor after it; `options` are the settings beside rule, score and alpha that
shaped the sets (a half-life, …) where they are not the defaults. `alphas` are all as JSON, `alpha`
the first. `level` is what p-values were compared with for it, another one than alpha where `adapt`
moved it, NULL where classes have levels of their own; `lowest_level` the lowest of all: classes
with a p-value above it stand in the graph. `levels` are the levels in use and the adaptive one's
state, `shift` what distinguishes due nodes from calibration nodes, both as JSON. `mean_size_naive`
is the mean size of naive sets, NULL in older runs; `lists` are the facts of its lists as JSON."""

prediction = Table(
    "prediction",
    metadata,
    Column("project", Text),
    Column("node_key", Text),
    Column("seq", BigInteger, nullable=False),
    Column("size", Integer, nullable=False),
    Column("classes", Text, nullable=False),
    Column("p_values", Text, nullable=False),
    Column("scores", Text, nullable=False),
    Column("degree", BigInteger, nullable=False),
    Column("in_graph", Boolean, nullable=False),
    Column("label", Text),
    Column("labelled_ns", BigInteger),
    Column("covered", Boolean),
    Column("covered_naive", Boolean),
    Column("unseen", Boolean),
    Column("top_p", Double),
    Column("band", Text),
    Column("created_ns", BigInteger),
    Column("evidence", Text),
    Column("sampled", Boolean, nullable=False, server_default=text("false")),
    Column("lists", Text),
    PrimaryKeyConstraint("project", "node_key"),
    ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    Index("prediction_by_run", "project", "seq", "node_key"),
    Index("prediction_unlabelled", "project", "labelled_ns"),
    partial_index(
        "prediction_known", "project", "seq", "label", "labelled_ns", "node_key",
        where="label IS NOT NULL",
    ),
    partial_index("prediction_sampled", "project", "seq", "node_key", where="sampled"),
    partial_index("prediction_listed", "project", "seq", "node_key", where="lists IS NOT NULL"),
)  # fmt: skip
"""One evaluated node. The primary key is the rule that a node is evaluated once, ever.

`label` is the newest class noticed, `labelled_ns` when the first one was; `unseen` says that the
model never saw such a class. `top_p` is the largest p-value: how well the likeliest class fits.
`band` is the stratum that judged it. Retention leaves a part of `p_values` and `scores`.
`node_key` is the record's key: the second node of a key has `1@` before it. `created_ns` is its
creation time or when it was first seen, `evidence` a digest of what was read; once both NULL.
`sampled`: its run drew it for the audit sample; `lists`: those it is on, with shares, as JSON."""

label = Table(
    "label",
    metadata,
    Column("project", Text),
    Column("node_key", Text),
    Column("noticed_ns", BigInteger),
    Column("label", Text, nullable=False),
    Column("happened_ns", BigInteger),
    Column("covered", Boolean, nullable=False),
    Column("covered_naive", Boolean, nullable=False),
    Column("unseen", Boolean, nullable=False),
    PrimaryKeyConstraint("project", "node_key", "noticed_ns"),
    ForeignKeyConstraint(["project", "node_key"], ["prediction.project", "prediction.node_key"]),
    Index("label_by_time", "project", "noticed_ns"),
)
"""Every class of an evaluated node that an audit noticed, and when: a change keeps both."""

grouping = Table(
    "grouping",
    metadata,
    Column("project", Text),
    Column("node_key", Text),
    Column("property", Text),
    Column("value", Text, nullable=False),
    PrimaryKeyConstraint("project", "node_key", "property"),
    ForeignKeyConstraint(["project", "node_key"], ["prediction.project", "prediction.node_key"]),
)
"""The configured groups of an evaluated node, as they were at the first audit after its run."""

audit_mark = Table(
    "audit_mark",
    metadata,
    Column("project", Text, primary_key=True),
    Column("audited_ns", BigInteger, nullable=False),
    Column("labels_ns", BigInteger),
    Column("grouped_seq", BigInteger, nullable=False),
    Column("advice", Text),
)
"""How far the audit has come: `labelled_at` read up to `labels_ns`, groups up to a run."""

coverage = Table(
    "coverage",
    metadata,
    Column("project", Text),
    Column("seq", BigInteger),
    Column("slice", Text),
    Column("name", Text),
    Column("model", Text, nullable=False),
    Column("alpha", Double, nullable=False),
    Column("audited_ns", BigInteger, nullable=False),
    Column("evaluated", BigInteger, nullable=False),
    Column("known", BigInteger, nullable=False),
    Column("covered", BigInteger, nullable=False),
    Column("covered_naive", BigInteger, nullable=False),
    Column("unseen", BigInteger, nullable=False),
    Column("coverage", Double),
    Column("low", Double, nullable=False),
    Column("high", Double, nullable=False),
    Column("p_value", Double, nullable=False),
    Column("anytime_low", Double, nullable=False),
    Column("anytime_p", Double, nullable=False),
    Column("mean_size", Double, nullable=False),
    Column("mean_degree", Double, nullable=False),
    Column("singletons", BigInteger, nullable=False),
    Column("singletons_known", BigInteger, nullable=False),
    Column("singleton_hits", BigInteger, nullable=False),
    Column("empty", BigInteger, nullable=False),
    Column("full", BigInteger, nullable=False),
    Column("bias", Double),
    Column("bias_words", Text, nullable=False),
    Column("exact", Boolean, nullable=False),
    Column("raised_by", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("words", Text, nullable=False),
    Column("first_alpha", Boolean, nullable=False, server_default=text("true")),
    Column("own_promise", Boolean, nullable=False, server_default=text("false")),
    Column("mean_size_naive", Double),
    PrimaryKeyConstraint("project", "seq", "slice", "name", "alpha"),
    ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
)
"""What the classes that became known say; late classes update the row.

Slices: `run` one run, `window` the last runs up to it, `total` all runs of the model up to it,
`sample` the nodes of the audit sample in those runs, or in the runs of the last 90 days (`name`),
`class` and `group` all runs of the model, at its last run, with the class or `property=value` as
`name`. `first_alpha` is false in rows about the sets at the alphas after a run's first;
`own_promise` is true in rows of a class or group that has a promise of its own, with its alpha.
`mean_size_naive`, without which naive coverage says nothing, stands in rows of runs alone."""

alarm = Table(
    "alarm",
    metadata,
    Column("project", Text),
    Column("rule", Text),
    Column("state", Text, nullable=False),
    Column("since_ns", BigInteger, nullable=False),
    Column("checked_ns", BigInteger, nullable=False),
    Column("words", Text, nullable=False),
    PrimaryKeyConstraint("project", "rule"),
    CheckConstraint("state IN ('ok', 'pending', 'firing', 'no data')", name="alarm_state"),
)
"""What each alarm rule says, since when."""

alarm_event = Table(
    "alarm_event",
    metadata,
    Column("project", Text),
    Column("n", BigInteger),
    Column("at_ns", BigInteger, nullable=False),
    Column("rule", Text, nullable=False),
    Column("was", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("words", Text, nullable=False),
    Column("delivered", Text, nullable=False),
    PrimaryKeyConstraint("project", "n"),
)
"""Every change of an alarm's state, and which channels have taken it."""

quarantine = Table(
    "quarantine",
    metadata,
    Column("project", Text),
    Column("element_id", Text),
    Column("node_key", Text),
    Column("seq", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("seen_ns", BigInteger, nullable=False),
    Column("kind", Text, nullable=False, server_default="node"),
    PrimaryKeyConstraint("project", "element_id"),
)
"""Nodes that could not be used, and why; relationships without a usable time are read anyway."""

rescore = Table(
    "rescore",
    metadata,
    Column("project", Text),
    Column("node_key", Text),
    Column("at_ns", BigInteger),
    Column("reason", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("alpha", Double, nullable=False),
    Column("classes", Text, nullable=False),
    Column("p_values", Text, nullable=False),
    Column("scores", Text, nullable=False),
    PrimaryKeyConstraint("project", "node_key", "at_ns"),
)
"""Later evaluations of nodes that a person asked for: no guarantee, in no coverage row."""
audit = Table(
    "audit",
    metadata,
    Column("project", Text),
    Column("n", BigInteger),
    Column("body", Text, nullable=False),
    Column("prev", Text, nullable=False),
    Column("hash", Text, nullable=False),
    PrimaryKeyConstraint("project", "n"),
)
"""The append-only chain: hash = HMAC(key, prev + body)."""

schedule = Table(
    "schedule",
    metadata,
    Column("project", Text),
    Column("job", Text),
    Column("trigger", Text, nullable=False),
    Column("timezone", Text, nullable=False),
    Column("due_ns", BigInteger),
    Column("owner", Text),
    Column("claimed_until_ns", BigInteger),
    Column("started_ns", BigInteger),
    Column("ended_ns", BigInteger),
    Column("outcome", Text),
    Column("words", Text),
    Column("failures", BigInteger, nullable=False),
    Column("failed_ns", BigInteger),
    Column("failed_words", Text),
    PrimaryKeyConstraint("project", "job"),
)
"""When each scheduled job is due (NULL: switched off), who runs it, how its last run ended."""

first_seen = Table(
    "first_seen",
    metadata,
    Column("project", Text),
    Column("node_key", Text),
    Column("seen_ns", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "node_key"),
)
"""When a run first saw a node, where the graph has no creation times."""
