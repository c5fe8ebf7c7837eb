"""The SQL views as the migrations leave them, by name; times are what the engine's clients show.

They stand here to be compared with those of a store (`connector.store.schema.differences`); a test
compares them with what the revisions under migrations/sql make on both engines.
"""

from __future__ import annotations

VIEWS = {
    "ringfence_run": (
        "SELECT r.project, r.seq, {decided} AS decided_at, r.state, "
        "r.rule, r.alpha, r.threshold, r.threshold_node, r.threshold_edge, r.threshold_naive, "
        "r.n_calibration, r.n_evaluated, r.n_waiting, r.n_quarantined, r.n_nodes, "
        "r.n_relationships, r.model FROM run r"
    ),
    "ringfence_coverage": (
        "SELECT c.project, c.seq, {decided} AS decided_at, "
        "{audited} AS audited_at, c.slice, c.name, c.model, 1 - c.alpha AS promised, c.coverage, "
        "c.low, c.high, c.anytime_low, c.p_value, c.anytime_p, c.evaluated, c.known, c.covered, "
        "c.covered_naive, c.unseen, c.mean_size, c.mean_degree, c.singletons, "
        "c.singletons_known, c.singleton_hits, c.empty, c.full AS full_sets, c.bias, "
        "c.verdict, c.raised_by, "
        "c.words, c.alpha, c.first_alpha, c.own_promise, c.mean_size_naive "
        "FROM coverage c JOIN run r ON r.project = c.project AND r.seq = c.seq"
    ),
    "ringfence_class": (
        "SELECT l.project, l.node_key, p.seq, l.label AS class, "
        "{noticed} AS noticed_at, {happened} AS "
        "happened_at, l.covered, l.covered_naive, l.unseen FROM label l "
        "JOIN prediction p ON p.project = l.project AND p.node_key = l.node_key"
    ),
    "ringfence_alarm": (
        "SELECT a.project, a.n, {at} AS at, "
        "a.rule, a.was, a.state, a.words, a.delivered FROM alarm_event a"
    ),
    "ringfence_threshold": (
        "SELECT t.project, t.seq, {decided} AS decided_at, "
        't.alpha, t.band, t."class", t.level, t.threshold, t.n_calibration, '
        "t.effective_calibration, t.n_evaluated "
        "FROM threshold t JOIN run r ON r.project = t.project AND r.seq = t.seq"
    ),
    "ringfence_outcome": (
        "SELECT m.project, m.n, m.node_key, p.seq, {marked} AS at, "
        "m.who, m.outcome, m.about, m.note, p.label AS class, p.lists, p.sampled, p.in_graph "
        "FROM mark m JOIN prediction p ON p.project = m.project AND p.node_key = m.node_key "
        "WHERE m.action = 'done' AND NOT EXISTS (SELECT 1 FROM mark l WHERE l.project = m.project "
        "AND l.node_key = m.node_key AND l.n > m.n AND l.action <> 'note')"
    ),
}
TIME_COLUMNS = {
    "decided": "r.decided_ns", "audited": "c.audited_ns", "noticed": "l.noticed_ns",
    "happened": "l.happened_ns", "at": "a.at_ns", "marked": "m.at_ns",
}  # fmt: skip


def view_query(name: str, time: str) -> str:
    """Return a view's query; `time` is how the engine makes a time of nanoseconds in {0}.

    >>> view_query("ringfence_alarm", "datetime({0} / 1000000000, 'unixepoch')")[:70]
    "SELECT a.project, a.n, datetime(a.at_ns / 1000000000, 'unixepoch') AS "
    """
    times = {word: time.format(column) for word, column in TIME_COLUMNS.items()}
    return VIEWS[name].format(**times)
