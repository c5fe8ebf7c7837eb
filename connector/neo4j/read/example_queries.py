"""Queries over sets that are printed for people to paste; the demo runs the first one too."""

DEVICES_OF_MULES = """\
MATCH (d:Device)<-[:USES]-(a:Account)-[r:MAY_BE]->(:RingfenceClass {name: 'mule'})
WHERE r.p > 0.2
RETURN d.id AS device, d.system AS system, d.emulated AS emulated, count(a) AS accounts
ORDER BY accounts DESC, device LIMIT 5"""
"""Which devices of the demo's graph accounts share that may be mules."""

CLASSES_OF_NODES = "MATCH (n)-[r:MAY_BE]->(c:RingfenceClass) RETURN n.id, c.name, r.p LIMIT 10"
"""Which classes some nodes may have."""

EVALUATED_NODES = "MATCH (n)-[:EVALUATED]->() RETURN n LIMIT 5"
"""Some nodes that have a set."""

GRAPH_SCHEMA = (
    "(:RingfenceRun {id, project, seq, at, rule, alpha, threshold, calibration, model})",
    "(n)-[:EVALUATED {key, size, alpha, level, band, sampled, lists}]->(:RingfenceRun)",
    "(n)-[:MAY_BE {p, in_set}]->(:RingfenceClass {project, name})",
    "(:CoverageAudit {slice, known, covered, low, high, verdict})-[:AUDITS]->(:RingfenceRun)",
)
"""What ringfence writes into a graph, as the README has it."""
