"""Edits of the tables that later versions added, in the form of `sql_edits`; see `later_record`.

Run 4 has two alphas, bands and further sets; one node joined the calibration by it. A calibration
node is corrected, and three nodes of a graph without creation times were first seen.
"""

RUN_4 = "WHERE seq = 4"

LATER_EDITS = {
    "threshold.threshold": (
        f"UPDATE threshold SET threshold = -0.1 {RUN_4} AND band = '0-4' AND alpha = 0.1",
        [f"UPDATE run SET threshold = -0.1 {RUN_4}"],
        "threshold: the thresholds of run 4",
    ),
    "threshold.threshold to -infinity": (
        f"UPDATE threshold SET threshold = NULL {RUN_4} AND band = '5+'",
        [],
        "threshold: the thresholds of run 4",
    ),
    "threshold.level": (
        f"UPDATE threshold SET level = 0.3 {RUN_4}",
        [f"UPDATE run SET level = 0.3 {RUN_4}"],
        "threshold: the thresholds of run 4",
    ),
    "threshold.n_calibration": (
        f"UPDATE threshold SET n_calibration = 9, effective_calibration = 9 {RUN_4}",
        [f"UPDATE run SET n_calibration = 18 {RUN_4}"],
        "threshold: the thresholds of run 4",
    ),
    "threshold.n_evaluated": (
        f"UPDATE threshold SET n_evaluated = n_evaluated + 1 {RUN_4}",
        [],
        "threshold: the thresholds of run 4",
    ),
    "threshold bands swapped": (
        f"UPDATE threshold SET band = '9' || band {RUN_4}",
        [f"UPDATE prediction SET band = '9' || band {RUN_4}"],
        "threshold: the thresholds of run 4",
    ),
    "threshold of a class": (
        f"UPDATE threshold SET class = 'mule' {RUN_4}",
        [],
        "threshold: the thresholds of run 4",
    ),
    "threshold deleted": (
        f"DELETE FROM threshold {RUN_4}",
        [f"UPDATE run SET n_thresholds = NULL {RUN_4}"],
        "threshold: the thresholds of run 4",
    ),
    "threshold moved to another run": (
        f"UPDATE threshold SET seq = 3 {RUN_4}",
        ["UPDATE run SET n_thresholds = 4 WHERE seq = 3"],
        "threshold: the thresholds of run 3",
    ),
    "prediction.band": (
        f"UPDATE prediction SET band = '5+' {RUN_4}",
        [f"UPDATE threshold SET n_evaluated = 9 {RUN_4}"],
        "run 4: band of some predictions",
    ),
    "prediction.band removed": (
        f"UPDATE prediction SET band = NULL {RUN_4} AND node_key = 's:new 3'",
        [],
        "run 4: band of some predictions",
    ),
    "prediction.sampled taken away": (
        f"UPDATE prediction SET sampled = FALSE {RUN_4} AND node_key = 's:new 3'",
        [],
        "run 4: 1 nodes are sampled, but 2 were drawn",
    ),
    "prediction.sampled added": (
        f"UPDATE prediction SET sampled = TRUE {RUN_4} AND node_key = 's:new 0'",
        ["UPDATE coverage SET evaluated = evaluated + 1 WHERE slice = 'sample'"],
        "run 4: 3 nodes are sampled, but 2 were drawn",
    ),
    "prediction.sampled moved to another node": (
        f"UPDATE prediction SET sampled = NOT sampled {RUN_4} "
        "AND node_key IN ('s:new 0', 's:new 3')",
        [],
        "run 4: sampled is not set at the 2 nodes that were drawn",
    ),
    "prediction.sampled in a run that drew none": (
        "UPDATE prediction SET sampled = TRUE WHERE seq = 2",
        [],
        "run 2: 40 nodes are sampled, but 0 were drawn",
    ),
    "prediction.lists taken away": (
        f"UPDATE prediction SET lists = NULL {RUN_4} AND node_key = 's:new 1'",
        [],
        "run 4: 1 nodes are on lists, but 2 were put on them",
    ),
    "prediction.lists added": (
        f"UPDATE prediction SET lists = '{{\"clear\":0.01}}' {RUN_4} AND node_key = 's:new 3'",
        [],
        "run 4: 3 nodes are on lists, but 2 were put on them",
    ),
    "prediction.lists moved to another list": (
        f"UPDATE prediction SET lists = '{{\"investigate\":0.01}}' {RUN_4} "
        "AND node_key = 's:new 1'",
        [],
        "run 4: lists of some of 2 listed nodes are not what was decided",
    ),
    "prediction.lists in a run that decided none": (
        "UPDATE prediction SET lists = '{\"clear\":0.01}' WHERE seq = 2",
        [],
        "run 2: 40 nodes are on lists, but 0 were put on them",
    ),
    "run.lists with another promise": (
        f"UPDATE run SET lists = replace(lists, '0.05', '0.5') {RUN_4}",
        [],
        "run 4: lists changed after the decision",
    ),
    "run.lists in a run that decided none": (
        "UPDATE run SET lists = '[]' WHERE seq = 2",
        [],
        "run 2: lists changed after the decision",
    ),
    "coverage.verdict of the sample": (
        "UPDATE coverage SET verdict = 'kept', coverage = 1.0 WHERE slice = 'sample'",
        ["UPDATE coverage SET words = 'kept' WHERE slice = 'sample'"],
        "coverage of run 4, sample",
    ),
    "coverage of the sample deleted": (
        "DELETE FROM coverage WHERE slice = 'sample' AND name <> ''",
        [],
        "coverage of run 4, sample 'last 90 days': the row is gone",
    ),
    "further_set.size": (
        f"UPDATE further_set SET size = size + 1 {RUN_4} AND node_key = 's:new 3'",
        [],
        "further_set: the sets of run 4",
    ),
    "further_set.alpha": (
        f"UPDATE further_set SET alpha = 0.02 {RUN_4} AND node_key = 's:new 3'",
        [],
        "further_set: the sets of run 4",
    ),
    "further_set.covered": (
        f"UPDATE further_set SET covered = NOT covered {RUN_4} AND node_key = 's:new 0'",
        [],
        "further_set s:new 0 (run 4): covered at alpha 0.005",
    ),
    "further_set.covered forgotten": (
        f"UPDATE further_set SET covered = NULL {RUN_4} AND node_key = 's:new 0'",
        [],
        "further_set s:new 0 (run 4): covered at alpha 0.005",
    ),
    "further_set.covered where no class is known": (
        f"UPDATE further_set SET covered = TRUE {RUN_4} AND node_key = 's:new 3'",
        [],
        "further_set s:new 3 (run 4): covered at alpha 0.005",
    ),
    "further_set deleted": (
        f"DELETE FROM further_set {RUN_4} AND node_key = 's:new 0'",
        [],
        "further_set: the sets of run 4",
    ),
    "further_set moved to another run": (
        f"UPDATE further_set SET seq = 3 {RUN_4}",
        ["UPDATE run SET alphas = '[0.1,0.005]' WHERE seq = 3"],
        "further_set: the sets of run 3",
    ),
    "further_set of a run that never was": (
        "INSERT INTO further_set (project, node_key, alpha, seq, size, covered) "
        "VALUES ('p', 's:new 0', 0.5, 99, 1, TRUE)",
        [],
        "rows of run 99, which was never decided",
    ),
    "joined.label": (
        "UPDATE joined SET label = 'mule'",
        [],
        "joined by run 4: node_key, evaluated_seq or label",
    ),
    "joined.version": (
        "UPDATE joined SET version = 'sample-0'",
        [],
        "joined by run 4: version of some row",
    ),
    "joined.evaluated_seq": (
        "UPDATE joined SET evaluated_seq = 2",
        [],
        "joined by run 4: node_key, evaluated_seq or label",
    ),
    "joined.node_key": (
        "UPDATE joined SET node_key = 's:new 1'",
        [],
        "joined by run 4: node_key, evaluated_seq or label",
    ),
    "joined.seq": (
        "UPDATE joined SET seq = 3",
        [],
        "joined by run 3: 1 rows, but 0 were recorded",
    ),
    "joined deleted": (
        "DELETE FROM joined",
        [f"UPDATE run SET n_calibration = n_calibration - 1 {RUN_4}"],
        "joined by run 4: 0 rows, but 1 were recorded",
    ),
    "joined inserted": (
        "INSERT INTO joined (project, version, node_key, seq, evaluated_seq, label) "
        "VALUES ('p', 'sample-1', 's:new 1', 4, 4, 'retail')",
        [],
        "joined by run 4: 2 rows, but 1 were recorded",
    ),
    "correction.label": (
        "UPDATE correction SET label = 'mule'",
        [],
        "correction of sample-1 noticed at",
    ),
    "correction.was": (
        "UPDATE correction SET was = 'mule'",
        [],
        "correction of sample-1 noticed at",
    ),
    "correction.reason": (
        "UPDATE correction SET reason = 'withdrawn'",
        ["UPDATE correction SET label = NULL"],
        "correction of sample-1 noticed at",
    ),
    "correction.node_key": (
        "UPDATE correction SET node_key = 'i:-72'",
        [],
        "correction of sample-1 noticed at",
    ),
    "correction.noticed_ns": (
        "UPDATE correction SET noticed_ns = noticed_ns + 1",
        [],
        "rows that nobody recorded (i:-71)",
    ),
    "correction deleted": (
        "DELETE FROM correction",
        [],
        "0 rows, but 1 were recorded",
    ),
    "correction inserted": (
        "INSERT INTO correction (project, version, node_key, noticed_ns, was, label, reason) "
        "SELECT project, version, 'i:-73', noticed_ns, was, label, reason FROM correction",
        [],
        "2 rows, but 1 were recorded",
    ),
    "first_seen.seen_ns": (
        "UPDATE first_seen SET seen_ns = 5 WHERE node_key = 's:b'",
        [],
        "first_seen at 5: rows that no run recorded (s:b)",
    ),
    "first_seen.seen_ns swapped": (
        "UPDATE first_seen SET seen_ns = CASE node_key WHEN 's:b' THEN 20 ELSE 10 END "
        "WHERE node_key IN ('s:b', 's:c')",
        [],
        "first_seen at 10: node_key of some of 2 rows changed",
    ),
    "first_seen.node_key": (
        "UPDATE first_seen SET node_key = 's:z' WHERE node_key = 's:b'",
        [],
        "first_seen at 10: node_key of some of 2 rows changed",
    ),
    "first_seen deleted": (
        "DELETE FROM first_seen WHERE node_key = 's:c'",
        [],
        "first_seen at 20: 0 rows, but 1 were recorded",
    ),
    "first_seen inserted": (
        "INSERT INTO first_seen (project, node_key, seen_ns) VALUES ('p', 's:z', 10)",
        [],
        "first_seen at 10: 3 rows, but 2 were recorded",
    ),
    "run.levels": (
        f"UPDATE run SET levels = NULL {RUN_4}",
        [],
        "run 4: levels changed",
    ),
    "run.level": (f"UPDATE run SET level = 0.3 {RUN_4}", [], "run 4: level changed"),
    "run.lowest_level": (f"UPDATE run SET lowest_level = 0 {RUN_4}", [], "run 4: lowest_level"),
    "run.alphas": (f"UPDATE run SET alphas = '[0.1]' {RUN_4}", [], "run 4: alphas changed"),
    "run.n_thresholds": (f"UPDATE run SET n_thresholds = 1 {RUN_4}", [], "run 4: n_thresholds"),
    "run.promise": (f"UPDATE run SET promise = 'class' {RUN_4}", [], "run 4: promise changed"),
    "run.calibration_set": (
        f"UPDATE run SET calibration_set = 'all' {RUN_4}",
        [],
        "run 4: calibration_set changed",
    ),
    "run.adapt": (f"UPDATE run SET adapt = NOT adapt {RUN_4}", [], "run 4: adapt changed"),
    "run.weights": (f"UPDATE run SET weights = 'shift' {RUN_4}", [], "run 4: weights changed"),
    "run.shift": (f"UPDATE run SET shift = '[1]' {RUN_4}", [], "run 4: shift changed"),
    "coverage.first_alpha": (
        "UPDATE coverage SET first_alpha = NOT first_alpha WHERE slice = 'total'",
        [],
        "first_alpha changed after the audit",
    ),
    "coverage at a further alpha": (
        "UPDATE coverage SET covered = covered + 1 WHERE slice = 'total' AND NOT first_alpha",
        [],
        "total at alpha 0.005: covered changed",
    ),
    "grouping of a run without groups": (
        "INSERT INTO grouping (project, node_key, property, value) "
        "VALUES ('p', 's:new 3', 'region', 'north')",
        [],
        "grouping: the groups of run 4",
    ),
    "comparison.result": (
        "UPDATE comparison SET result = replace(result, '40', '50') WHERE n = 1",
        [],
        "comparison 1: result changed",
    ),
    "comparison.version": (
        "UPDATE comparison SET version = 'sample-2' WHERE n = 1",
        [],
        "comparison 1: version changed",
    ),
    "comparison.against": (
        "UPDATE comparison SET against = 'sample-2' WHERE n = 1",
        [],
        "comparison 1: against changed",
    ),
    "comparison.at_ns": (
        "UPDATE comparison SET at_ns = at_ns + 1 WHERE n = 2",
        [],
        "comparison 2: at_ns changed",
    ),
    "comparison deleted": (
        "DELETE FROM comparison WHERE n = 2",
        [],
        "comparison 2: the row is gone, model sample-2 was compared",
    ),
    "comparison inserted": (
        "INSERT INTO comparison SELECT project, 3, at_ns, version, against, result "
        "FROM comparison WHERE n = 2",
        [],
        "comparison 3: model sample-2 was never compared",
    ),
    "member.role to holdout": (
        "UPDATE member SET role = 'holdout' WHERE node_key = 'i:-71'",
        [],
        "member of sample-1: the calibration nodes",
    ),
    "member.created_ns": (
        "UPDATE member SET created_ns = 7 WHERE node_key = 'i:-71'",
        [],
        "member of sample-1: the calibration nodes",
    ),
    "key_salt.salt": (
        "UPDATE key_salt SET salt = 'another salt'",
        [],
        "key_salt: salt is not the one that the chain's digests were made with",
    ),
    "key_salt deleted": (
        "DELETE FROM key_salt",
        [],
        "key_salt: the project's row is gone",
    ),
    "monitor_input.p_values": (
        f"UPDATE monitor_input SET p_values = '[0.4,0.9]' {RUN_4}",
        [],
        "monitor_input of run 4: node_keys or p_values changed",
    ),
    "monitor_input.node_keys": (
        f'UPDATE monitor_input SET node_keys = \'["s:account 1-6","s:account 1-5"]\' {RUN_4}',
        [],
        "monitor_input of run 4: node_keys or p_values changed",
    ),
    "monitor_input deleted": (
        f"DELETE FROM monitor_input {RUN_4}",
        [],
        "monitor_input of run 4: the row is gone",
    ),
    "monitor_input moved to another run": (
        f"UPDATE monitor_input SET seq = 3 {RUN_4}",
        [],
        "monitor_input of run 3: the row was never recorded",
    ),
}
