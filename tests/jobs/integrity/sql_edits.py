"""Edits of the audit store by whoever can write SQL and has neither the chain's key nor the log.

By name: the statements (several with "; " between them), the obvious cover-up that changes what
depends on them, and words that one of the problems must have. `{node}` is the key of a node of
known class in run 2, `{unknown}` that of one of unknown class.
"""

from tests.jobs.integrity.sample_record import GONE


def edit_entry(n, old, new):
    """Replace text in an entry's body."""
    return f"UPDATE audit SET body = replace(body, '{old}', '{new}') WHERE n = {n}"


RECOUNT = (
    "UPDATE coverage SET covered = covered + 1, coverage = 1.0 * (covered + 1) / known "
    "WHERE slice IN ('run', 'total', 'window') AND seq >= 2"
)
NEXT_LABELS = "UPDATE label SET covered = NOT covered WHERE node_key = '{node}'"
COPY_LABEL = (
    "INSERT INTO label (project, node_key, noticed_ns, label, happened_ns, covered, covered_naive, "
    "unseen) SELECT project, node_key, noticed_ns{shift}, 'mule', NULL, covered, covered_naive, "
    "unseen FROM label WHERE node_key = '{node}'"
)
COPY_RUN = (
    "INSERT INTO run (project, seq, state, token, started_ns, decided_ns, applied_ns, rule, score, "
    "alpha, n_calibration, effective_calibration, n_evaluated, n_waiting, n_already_known, "
    "n_quarantined, n_nodes, n_relationships, model, config, software, notes, timings) SELECT "
    "project, 4, state, token, started_ns, decided_ns, applied_ns, rule, score, alpha, "
    "n_calibration, effective_calibration, 0, n_waiting, n_already_known, n_quarantined, n_nodes, "
    "n_relationships, model, config, software, notes, timings FROM run WHERE seq = 3"
)

SQL_EDITS = {
    "worklist_entry hidden from the worklist": (
        "DELETE FROM worklist_entry WHERE node_key = '{node}'",
        [],
        "worklist_entry {node} (run 2)",
    ),
    "worklist_entry.p": (
        "UPDATE worklist_entry SET p = p / 2 WHERE node_key = '{node}'",
        [],
        "worklist_entry {node} (run 2)",
    ),
    "worklist_entry.known": (
        "UPDATE worklist_entry SET known = NOT known WHERE node_key = '{node}'",
        [],
        "worklist_entry {node} (run 2)",
    ),
    "worklist_entry of nobody": (
        "INSERT INTO worklist_entry (project, node_key, class, p, seq, size, degree, known) "
        "SELECT project, 's:nobody', class, p, seq, size, degree, known FROM worklist_entry "
        "WHERE node_key = '{node}'",
        [],
        "nodes that were never evaluated",
    ),
    "mark.who": (
        "UPDATE mark SET who = 'somebody else' WHERE n = 1",
        [],
        "mark 1: who changed",
    ),
    "mark.note and action": (
        "UPDATE mark SET note = 'all fine', action = 'done' WHERE n = 1",
        [],
        "mark 1: action, note changed",
    ),
    "mark.outcome": (
        "UPDATE mark SET outcome = 'false alarm' WHERE n = 2",
        [],
        "mark 2: outcome changed",
    ),
    "mark.about and assignee": (
        "UPDATE mark SET about = 'retail', assignee = 'otto' WHERE n = 1",
        [],
        "mark 1: about, assignee changed",
    ),
    "mark.outcome taken away": (
        "UPDATE mark SET outcome = NULL, about = NULL WHERE n = 2",
        [],
        "mark 2: about, outcome changed",
    ),
    "mark removed": (
        "DELETE FROM mark WHERE n = 1",
        ["UPDATE mark SET n = 1 WHERE n = 2"],
        "mark 1: ",
    ),
    "mark made up": (
        "INSERT INTO mark (project, n, node_key, at_ns, who, action, note) SELECT project, 9, "
        "node_key, at_ns, 'boss', 'done', '' FROM mark WHERE n = 1",
        [],
        "mark 9: the row was never recorded",
    ),
    "prediction.covered": (
        "UPDATE prediction SET covered = NOT covered WHERE node_key = '{node}'",
        [NEXT_LABELS, RECOUNT],
        "prediction {node} (run 2): covered",
    ),
    "every prediction.covered": (
        "UPDATE prediction SET covered = FALSE WHERE label IS NOT NULL",
        ["UPDATE label SET covered = FALSE", "UPDATE coverage SET covered = 0, coverage = 0"],
        ": covered",
    ),
    "prediction.covered_naive": (
        "UPDATE prediction SET covered_naive = NOT covered_naive WHERE node_key = '{node}'",
        ["UPDATE label SET covered_naive = NOT covered_naive WHERE node_key = '{node}'"],
        "prediction {node} (run 2): covered_naive",
    ),
    "prediction.unseen": (
        "UPDATE prediction SET unseen = NOT unseen WHERE node_key = '{node}'",
        ["UPDATE label SET unseen = NOT unseen WHERE node_key = '{node}'"],
        "prediction {node} (run 2): unseen",
    ),
    "prediction.label": (
        "UPDATE prediction SET label = 'nobody' WHERE node_key = '{node}'",
        ["UPDATE label SET label = 'nobody' WHERE node_key = '{node}'"],
        "label",
    ),
    "prediction.label forgotten": (
        "UPDATE prediction SET label = NULL, labelled_ns = NULL, covered = NULL, "
        "covered_naive = NULL, unseen = NULL WHERE node_key = '{node}'",
        ["DELETE FROM label WHERE node_key = '{node}'", RECOUNT],
        "label",
    ),
    "prediction.labelled_ns": (
        "UPDATE prediction SET labelled_ns = labelled_ns + 1 WHERE node_key = '{node}'",
        ["UPDATE label SET noticed_ns = noticed_ns + 1 WHERE node_key = '{node}'"],
        "label",
    ),
    "prediction.created_ns": (
        "UPDATE prediction SET created_ns = created_ns + 1 WHERE node_key = '{node}'",
        [],
        "run 2: created_ns or evidence",
    ),
    "prediction.created_ns taken away": (
        "UPDATE prediction SET created_ns = NULL WHERE node_key = '{node}'",
        [],
        "run 2: created_ns or evidence",
    ),
    "prediction.evidence": (
        "UPDATE prediction SET evidence = '00' WHERE node_key = '{node}'",
        [],
        "run 2: created_ns or evidence",
    ),
    "prediction.degree": (
        "UPDATE prediction SET degree = degree + 1 WHERE node_key = '{node}'",
        ["UPDATE coverage SET mean_degree = mean_degree + 0.1 WHERE seq = 2"],
        "run 2: degree",
    ),
    "prediction.in_graph": (
        "UPDATE prediction SET in_graph = FALSE WHERE node_key = '{node}'",
        [],
        "prediction {node} (run 2): in_graph",
    ),
    "prediction.in_graph of a node that left": (
        f"UPDATE prediction SET in_graph = TRUE WHERE node_key = '{GONE}'",
        [],
        f"prediction {GONE} (run 1): in_graph",
    ),
    "prediction.size": (
        "UPDATE prediction SET size = 9 WHERE node_key = '{node}'",
        ["UPDATE coverage SET mean_size = mean_size + 0.1 WHERE seq = 2"],
        "prediction {node} (run 2): size",
    ),
    "prediction.top_p": (
        "UPDATE prediction SET top_p = 0.5 WHERE node_key = '{node}'",
        ["UPDATE coverage SET bias = 0 WHERE seq = 2"],
        "prediction {node} (run 2): top_p",
    ),
    "prediction.top_p removed": (
        "UPDATE prediction SET top_p = NULL WHERE node_key = '{node}'",
        [],
        "prediction {node} (run 2): top_p",
    ),
    "prediction.classes": (
        "UPDATE prediction SET classes = '[]' WHERE node_key = '{node}'",
        ["UPDATE prediction SET size = 0, covered = FALSE WHERE node_key = '{node}'"],
        "run 2: its predictions",
    ),
    "prediction.p_values": (
        "UPDATE prediction SET p_values = '[1.0,1.0,1.0,1.0]' WHERE node_key = '{node}'",
        ["UPDATE prediction SET top_p = 1.0 WHERE node_key = '{node}'"],
        "run 2: its predictions",
    ),
    "prediction.scores": (
        "UPDATE prediction SET scores = '[0.0,0.0,0.0,0.0]' WHERE node_key = '{node}'",
        ["UPDATE prediction SET covered_naive = TRUE WHERE node_key = '{node}'"],
        "run 2: its predictions",
    ),
    "prediction that can't be read": (
        "UPDATE prediction SET classes = 'x' WHERE node_key = '{node}'",
        [],
        "prediction {node} (run 2): classes",
    ),
    "prediction.node_key": (
        "DELETE FROM grouping WHERE node_key = '{unknown}'; "
        "UPDATE prediction SET node_key = 's:other' WHERE node_key = '{unknown}'",
        [],
        "run 2: its predictions",
    ),
    "prediction.seq": (
        "UPDATE prediction SET seq = 3 WHERE node_key = '{node}'",
        ["UPDATE run SET n_evaluated = 41 WHERE seq = 3"],
        "run 3: its predictions",
    ),
    "prediction deleted": (
        "DELETE FROM grouping WHERE node_key = '{unknown}'; "
        "DELETE FROM prediction WHERE node_key = '{unknown}'",
        ["UPDATE run SET n_evaluated = 39 WHERE seq = 2"],
        "run 2: 39 predictions",
    ),
    "prediction inserted": (
        "INSERT INTO prediction (project, node_key, seq, size, classes, p_values, scores, degree, "
        "in_graph) SELECT project, 's:new', seq, size, classes, p_values, scores, degree, in_graph "
        "FROM prediction WHERE node_key = '{node}'",
        ["UPDATE run SET n_evaluated = 41 WHERE seq = 2"],
        "run 2: 41 predictions",
    ),
    "label.label": (
        "UPDATE label SET label = 'nobody' WHERE node_key = '{node}'",
        ["UPDATE prediction SET label = 'nobody', unseen = TRUE WHERE node_key = '{node}'"],
        "label noticed at",
    ),
    "label.covered": (
        NEXT_LABELS,
        ["UPDATE prediction SET covered = NOT covered WHERE node_key = '{node}'", RECOUNT],
        "prediction {node} (run 2): covered in its label row",
    ),
    "label.covered_naive": (
        "UPDATE label SET covered_naive = NOT covered_naive WHERE node_key = '{node}'",
        ["UPDATE prediction SET covered_naive = NOT covered_naive WHERE node_key = '{node}'"],
        "prediction {node} (run 2): covered_naive in its label row",
    ),
    "label.happened_ns": (
        "UPDATE label SET happened_ns = 5 WHERE node_key = '{node}'",
        [],
        "label noticed at",
    ),
    "label.noticed_ns": (
        "UPDATE label SET noticed_ns = noticed_ns - 1 WHERE node_key = '{node}'",
        ["UPDATE prediction SET labelled_ns = labelled_ns - 1 WHERE node_key = '{node}'"],
        "rows that no audit recorded ({node})",
    ),
    "label deleted": (
        "DELETE FROM label WHERE node_key = '{node}'",
        ["UPDATE prediction SET label = NULL, labelled_ns = NULL, covered = NULL, "
         "covered_naive = NULL, unseen = NULL WHERE node_key = '{node}'"],
        "label noticed at",
    ),
    "labels deleted": (
        "DELETE FROM label",
        ["UPDATE prediction SET label = NULL, labelled_ns = NULL, covered = NULL, "
         "covered_naive = NULL, unseen = NULL", "DELETE FROM coverage"],
        "rows are gone",
    ),
    "label inserted": (
        COPY_LABEL.replace("{shift}", " + 1"),
        ["UPDATE prediction SET label = 'mule' WHERE node_key = '{node}'"],
        "rows that no audit recorded ({node})",
    ),
    "coverage.covered": (
        RECOUNT,
        ["UPDATE prediction SET covered = TRUE WHERE seq = 2 AND label IS NOT NULL"],
        "coverage of run 2, run: coverage, covered changed",
    ),
    "coverage.verdict": (
        "UPDATE coverage SET verdict = 'kept' WHERE slice = 'total'",
        ["UPDATE coverage SET words = 'kept', p_value = 1, anytime_p = 1 WHERE slice = 'total'"],
        "coverage of run 3, total: ",
    ),
    "coverage.words": (
        "UPDATE coverage SET words = 'all is well' WHERE slice = 'run' AND seq = 1",
        [],
        "coverage of run 1, run: words changed",
    ),
    "coverage.audited_ns": (
        "UPDATE coverage SET audited_ns = audited_ns + 1 WHERE slice = 'run' AND seq = 1",
        [],
        "coverage of run 1, run: audited_ns changed",
    ),
    "coverage deleted": (
        "DELETE FROM coverage WHERE slice = 'total' AND seq = 3",
        ["DELETE FROM coverage WHERE slice = 'window' AND seq = 3"],
        "coverage of run 3, total: the row is gone",
    ),
    "coverage of a class deleted": (
        "DELETE FROM coverage WHERE slice = 'class' AND name = 'mule'",
        [],
        "coverage of run 3, class 'mule': the row is gone",
    ),
    "coverage moved": (
        "UPDATE coverage SET name = 'nobody' WHERE slice = 'class' AND name = 'mule'",
        [],
        "coverage of run 3, class 'nobody': the row was never recorded",
    ),
    "member.role swapped": (
        "UPDATE member SET role = CASE role WHEN 'train' THEN 'validation' ELSE 'train' END "
        "WHERE node_key IN ('i:-1', 'i:-51')",
        [],
        "member of sample-1: the train nodes",
    ),
    "member.class_index rotated": (
        "UPDATE member SET class_index = (class_index + 1) % 4 WHERE role = 'calibration'",
        [],
        "member of sample-1: the calibration nodes",
    ),
    "calibration cut to three": (
        "DELETE FROM member WHERE role = 'calibration' AND node_key NOT IN "
        "('i:-71', 'i:-72', 'i:-73')",
        ["UPDATE run SET n_calibration = 3, effective_calibration = 3"],
        "member of sample-1: 73 rows, but 130",
    ),
    "member exchanged": (
        "UPDATE member SET node_key = 'i:99' WHERE node_key = 'i:-71'",
        [],
        "member of sample-1: the calibration nodes",
    ),
    "model.manifest": (
        "UPDATE model SET manifest = '{}'",
        [],
        "model sample-1: its manifest",
    ),
    "model.trained_ns": (
        "UPDATE model SET trained_ns = trained_ns + 1",
        [],
        "model sample-1: trained_ns",
    ),
    "model inserted": (
        "INSERT INTO model (project, version, trained_ns, manifest) "
        "SELECT project, 'sample-3', trained_ns + 1, manifest FROM model "
        "WHERE version = 'sample-1'",
        ["INSERT INTO member (project, version, node_key, role, class_index) "
         "SELECT project, 'sample-3', node_key, role, class_index FROM member "
         "WHERE version = 'sample-1'"],
        "model sample-3 stands in SQL, but was never trained",
    ),
    "candidate taken into use": (
        "INSERT INTO activation SELECT project, 4, at_ns, 'sample-2', 'sample-1', how, reason, "
        "actor FROM activation WHERE n = 2",
        ["UPDATE run SET model = 'sample-2' WHERE seq = 3"],
        "activation 4: model sample-2 was never taken into use",
    ),
    "rollback undone": (
        "DELETE FROM activation WHERE n = 3",
        [],
        "activation 3: the row is gone, model sample-1 was in use",
    ),
    "activation.version": (
        "UPDATE activation SET version = 'sample-2' WHERE n = 3",
        ["UPDATE activation SET was = 'sample-2' WHERE n = 3"],
        "activation 3: version changed",
    ),
    "activation.was": ("UPDATE activation SET was = NULL WHERE n = 2", [], "activation 2: was"),
    "activation.how": (
        "UPDATE activation SET how = 'promoted' WHERE n = 3",
        [],
        "activation 3: how changed",
    ),
    "activation.reason": (
        "UPDATE activation SET reason = 'the board asked for it' WHERE n = 2",
        ["UPDATE activation SET actor = '{}' WHERE n = 2"],
        "reason changed",
    ),
    "activation.actor": (
        "UPDATE activation SET actor = replace(actor, 'python', 'promote') WHERE n = 2",
        [],
        "activation 2: actor changed",
    ),
    "activation.at_ns": (
        "UPDATE activation SET at_ns = at_ns + 1 WHERE n = 1",
        [],
        "activation 1: at_ns changed",
    ),
    "run.threshold": (
        "UPDATE run SET threshold = -0.5 WHERE seq = 2",
        ["UPDATE run SET threshold_node = -0.5 WHERE seq = 2"],
        "run 2: threshold",
    ),
    "run.threshold_naive": (
        "UPDATE run SET threshold_naive = 0 WHERE seq = 2",
        [],
        "run 2: threshold_naive changed",
    ),
    "run.mean_size_naive": (
        "UPDATE run SET mean_size_naive = 1 WHERE seq = 2",
        ["UPDATE coverage SET mean_size_naive = 1"],
        "run 2: mean_size_naive changed",
    ),
    "run.alpha": (
        "UPDATE run SET alpha = 0.5",
        ["UPDATE coverage SET alpha = 0.5"],
        "run 1: alpha changed",
    ),
    "run.watch": ("UPDATE run SET watch = NULL WHERE seq = 3", [], "run 3: watch changed"),
    "run.token": ("UPDATE run SET token = 7 WHERE seq = 3", [], "run 3: token changed"),
    "run.applied_ns": (
        "UPDATE run SET applied_ns = 7 WHERE seq = 3",
        [],
        "run 3: applied_ns changed",
    ),
    "run.state": (
        "UPDATE run SET state = 'decided' WHERE seq = 3",
        ["UPDATE run SET applied_ns = NULL, timings = '{}' WHERE seq = 3"],
        "run 3: state is 'decided'",
    ),
    "run inserted": (
        COPY_RUN,
        ["UPDATE lease SET next_seq = 5"],
        "run 4 stands in SQL, but was never decided",
    ),
    "grouping.value": (
        "UPDATE grouping SET value = 'north' WHERE value = 'south'",
        ["DELETE FROM coverage WHERE name = 'region=south'"],
        "grouping: the groups of run 2",
    ),
    "grouping deleted": (
        "DELETE FROM grouping WHERE node_key = '{node}'",
        [],
        "grouping: the groups of run 2",
    ),
    "lease.watermark_ns": (
        "UPDATE lease SET watermark_ns = watermark_ns - 1",
        ["UPDATE run SET watermark_to_ns = watermark_to_ns - 1 WHERE seq = 3"],
        "lease: watermark_ns",
    ),
    "lease.next_seq": ("UPDATE lease SET next_seq = 9", [], "lease: next_seq is 9"),
    "lease deleted": ("DELETE FROM lease", [], "lease: the project's row is gone"),
    "alarm.state": (
        "UPDATE alarm SET state = 'ok' WHERE rule = 'coverage'",
        ["UPDATE alarm_event SET state = 'ok' WHERE rule = 'coverage'"],
        "alarm coverage: state changed",
    ),
    "alarm.state that never fired": (
        "UPDATE alarm SET state = 'no data' WHERE rule = 'unseen'",
        [],
        "alarm unseen: state changed",
    ),
    "alarm.words": (
        "UPDATE alarm SET words = 'all is well' WHERE rule = 'coverage'",
        [],
        "alarm coverage: words changed",
    ),
    "alarm.since_ns": (
        "UPDATE alarm SET since_ns = since_ns + 1 WHERE rule = 'coverage'",
        [],
        "alarm coverage: since_ns changed",
    ),
    "alarm deleted": (
        "DELETE FROM alarm WHERE rule = 'coverage'",
        ["DELETE FROM alarm_event WHERE rule = 'coverage'"],
        "alarm coverage: the row is gone",
    ),
    "alarm_event.state": (
        "UPDATE alarm_event SET state = 'ok' WHERE rule = 'coverage'",
        ["UPDATE alarm SET state = 'ok' WHERE rule = 'coverage'"],
        "alarm_event 1: state changed",
    ),
    "alarm_event.at_ns": (
        "UPDATE alarm_event SET at_ns = at_ns + 1 WHERE n = 1",
        [],
        "alarm_event 1: at_ns changed",
    ),
    "alarm_event deleted": (
        "DELETE FROM alarm_event WHERE n = 1",
        ["UPDATE alarm SET state = 'ok' WHERE rule = 'coverage'"],
        "alarm_event 1: the row is gone",
    ),
    "alarm_event inserted": (
        "INSERT INTO alarm_event (project, n, at_ns, rule, was, state, words, delivered) "
        "SELECT project, 99, at_ns, rule, 'firing', 'ok', words, '' FROM alarm_event WHERE n = 1",
        ["UPDATE alarm SET state = 'ok' WHERE rule = 'coverage'"],
        "alarm_event 99: the row was never recorded",
    ),
    "rescore.classes": (
        "UPDATE rescore SET classes = '[]'",
        [],
        "rescore at",
    ),
    "rescore.alpha": ("UPDATE rescore SET alpha = 0.5", [], "alpha changed"),
    "rescore deleted": ("DELETE FROM rescore", [], "rescore: 0 later evaluations"),
    "chain entry edited": (
        "UPDATE audit SET body = '{}' WHERE n = 3",
        [],
        "the chain is broken at entry 3",
    ),
    "chain entry deleted": (
        "DELETE FROM audit WHERE n = 3",
        ["UPDATE audit SET n = n - 1 WHERE n > 3 AND n < 5"],
        "the chain is broken at entry 3",
    ),
    "chain emptied": (
        "DELETE FROM audit",
        [],
        "run 1 stands in SQL, but was never decided",
    ),
    "chain entry's time": (
        edit_entry(3, '"at_ns":', '"at_ns":1'),
        [],
        "the chain is broken at entry 3",
    ),
    "chain entry's actor": (
        edit_entry(3, '"verb":"python"', '"verb":"train"'),
        [],
        "the chain is broken at entry 3",
    ),
    "chain entry's project": (
        "UPDATE audit SET project = 'q' WHERE n = 3",
        ["UPDATE audit SET n = n - 1 WHERE n > 3 AND project = 'p' AND n < 5"],
        "the chain is broken at entry 3",
    ),
    "chain entry's hash": (
        "UPDATE audit SET hash = prev WHERE n = 3",
        ["UPDATE audit SET prev = (SELECT a.hash FROM audit a WHERE a.n = 3) WHERE n = 4"],
        "the chain is broken at entry 3",
    ),
    "chain entries swapped": (
        "UPDATE audit SET n = -3 WHERE n = 3; UPDATE audit SET n = 3 WHERE n = 4; "
        "UPDATE audit SET n = 4 WHERE n = -3",
        [],
        "the chain is broken at entry 3",
    ),
    "chain entry copied to the end": (
        "INSERT INTO audit (project, n, body, prev, hash) SELECT project, (SELECT max(n) + 1 FROM "
        "audit), body, (SELECT hash FROM audit ORDER BY n DESC LIMIT 1), hash FROM audit "
        "WHERE n = 3",
        [],
        "the chain is broken at entry",
    ),
    "project renamed": (
        "UPDATE audit SET project = 'q'; UPDATE run SET token = token WHERE seq = 1",
        [],
        "run 1 stands in SQL, but was never decided",
    ),
    "prediction rows swapped": (
        "UPDATE prediction SET seq = CASE seq WHEN 1 THEN 3 ELSE 1 END "
        "WHERE node_key IN ('s:account 1-5', 's:account 3-5')",
        [],
        "run 1: its predictions",
    ),
    "prediction.p_values swapped": (
        "UPDATE prediction SET p_values = CASE node_key WHEN 's:account 1-5' THEN (SELECT "
        "o.p_values FROM prediction o WHERE o.node_key = 's:account 1-6') ELSE (SELECT o.p_values "
        "FROM prediction o WHERE o.node_key = 's:account 1-5') END WHERE node_key IN "
        "('s:account 1-5', 's:account 1-6')",
        [],
        "run 1: its predictions",
    ),
    "prediction.size below zero": (
        "UPDATE prediction SET size = -1 WHERE node_key = '{node}'",
        [],
        "prediction {node} (run 2): size",
    ),
    "run.options": (
        """UPDATE run SET options = '{"nonempty":true}' WHERE seq = 3""",
        [],
        "run 3: options changed",
    ),
    "run.decided_ns": ("UPDATE run SET decided_ns = 7 WHERE seq = 2", [], "run 2: decided_ns"),
    "run.notes": ("""UPDATE run SET notes = '["a"]' WHERE seq = 2""", [], "run 2: notes changed"),
    "run.n_waiting": ("UPDATE run SET n_waiting = 77 WHERE seq = 2", [], "run 2: n_waiting"),
    "run.config": ("UPDATE run SET config = 'x' WHERE seq = 2", [], "run 2: config changed"),
    "run.software": ("UPDATE run SET software = '9' WHERE seq = 2", [], "run 2: software changed"),
    "run.model": ("UPDATE run SET model = 'x' WHERE seq = 2", [], "run 2: model changed"),
    "run.calibration_scores": (
        "UPDATE run SET calibration_scores = NULL WHERE seq = 2",
        [],
        "run 2: calibration_scores changed",
    ),
    "run.notes that are no JSON": ("UPDATE run SET notes = 'x' WHERE seq = 2", [], "run 2: notes"),
    "member inserted": (
        "INSERT INTO member (project, version, node_key, role, class_index) "
        "VALUES ('p', 'sample-1', 'i:77', 'calibration', 0)",
        [],
        "member of sample-1: 131 rows",
    ),
    "grouping inserted": (
        "INSERT INTO grouping (project, node_key, property, value) "
        "VALUES ('p', '{node}', 'product', 'loan')",
        [],
        "grouping: the groups of run 2",
    ),
    "grouping.property": (
        "UPDATE grouping SET property = 'product' WHERE node_key = '{node}'",
        [],
        "grouping: the groups of run 2",
    ),
    "rescore inserted": (
        "INSERT INTO rescore (project, node_key, at_ns, reason, model, alpha, classes, p_values, "
        "scores) SELECT project, node_key, at_ns + 1, reason, model, alpha, classes, p_values, "
        "scores FROM rescore",
        [],
        "rescore: 2 later evaluations",
    ),
    "rescore.at_ns": ("UPDATE rescore SET at_ns = at_ns + 1", [], "at_ns changed"),
    "rescore.reason": ("UPDATE rescore SET reason = 'x'", [], "reason changed"),
    "rescore.model": ("UPDATE rescore SET model = 'x'", [], "model changed"),
    "coverage.model": (
        "UPDATE coverage SET model = 'x' WHERE slice = 'total'",
        [],
        "coverage of run 3, total: model changed",
    ),
    "coverage.own_promise": (
        "UPDATE coverage SET own_promise = NOT own_promise WHERE slice = 'total' AND seq = 3",
        [],
        "coverage of run 3, total: own_promise changed",
    ),
    "coverage.mean_size_naive": (
        "UPDATE coverage SET mean_size_naive = NULL WHERE slice = 'total' AND seq = 3",
        [],
        "coverage of run 3, total: mean_size_naive changed",
    ),
    "coverage inserted": (
        "INSERT INTO coverage SELECT project, seq, 'class', 'forged', model, alpha, audited_ns, "
        "evaluated, "
        "known, covered, covered_naive, unseen, coverage, low, high, p_value, anytime_low, "
        "anytime_p, mean_size, mean_degree, singletons, singletons_known, singleton_hits, empty, "
        "\"full\", bias, bias_words, exact, raised_by, verdict, words, first_alpha, own_promise, "
        "mean_size_naive "
        "FROM coverage WHERE slice = 'total' AND seq = 3",
        [],
        "coverage of run 3, class 'forged': the row was never recorded",
    ),
    "alarm inserted": (
        "INSERT INTO alarm (project, rule, state, since_ns, checked_ns, words) "
        "VALUES ('p', 'bias', 'ok', 1, 1, 'all is well')",
        [],
        "alarm bias: the row was never recorded",
    ),
    "audit_mark.labels_ns": (
        "UPDATE audit_mark SET labels_ns = 9",
        [],
        "audit_mark: labels_ns",
    ),
    "audit_mark.grouped_seq": (
        "UPDATE audit_mark SET grouped_seq = 9",
        [],
        "audit_mark: grouped_seq is 9",
    ),
    "audit_mark deleted": ("DELETE FROM audit_mark", [], "audit_mark: the project's row is gone"),
}  # fmt: skip
