"""Edits of what ringfence wrote to the graph, by whoever can write Cypher and has no key or log.

By name: the query and words that one of the problems must have. `$project`
is the name of the project; `{key}` stands for the key of the node that `PICK` finds.
"""

ONE = "MATCH (n:Account)-[e:EVALUATED]->(r:RingfenceRun {id: $project + '/1'}) "
PICK = (
    ONE + "WHERE e.size > 0 AND EXISTS { MATCH (c:RingfenceClass {project: $project}) "
    "WHERE NOT (n)-[:MAY_BE]->(c) } WITH n, e, r ORDER BY e.key LIMIT 1 "
)
TAKE = PICK + "SET n.k = e.key, n.s = e.size, n.a = e.alpha DELETE e"
TAKEN = "MATCH (n:Account) WHERE n.k IS NOT NULL MATCH (r:RingfenceRun {id: $project + $run}) "
FACTS = "{key: n.k, size: n.s, alpha: n.a}"
MOVES = {
    "another node": (TAKEN + f"CREATE (:Account {{id: 999999}})-[:EVALUATED {FACTS}]->(r)", "/1"),
    "another run": (TAKEN + f"CREATE (n)-[:EVALUATED {FACTS}]->(r)", "/2"),
}
"""Where an EVALUATED goes that `TAKE` took: a unique key is free again after a commit alone."""

TOTAL = "MATCH (a:CoverageAudit {id: $project + '/1/total'}) "
RUN = "MATCH (r:RingfenceRun {id: $project + '/1'}) "
FENCE = "MATCH (f:RingfenceFence {project: $project}) "
DIFFERS = "{key} (run 1): the node's EVALUATED or MAY_BE relationships are not"
LACKS = "{key} (run 1): in SQL, but the node lacks its EVALUATED"

GRAPH_EDITS = {
    "EVALUATED.size": (PICK + "SET e.size = e.size + 1", DIFFERS),
    "EVALUATED.size as text": (PICK + "SET e.size = toString(e.size)", DIFFERS),
    "EVALUATED.alpha": (PICK + "SET e.alpha = 0.01", DIFFERS),
    "EVALUATED.level": (PICK + "SET e.level = 0.77", DIFFERS),
    "EVALUATED.level removed": (PICK + "REMOVE e.level", DIFFERS),
    "EVALUATED.band": (PICK + "SET e.band = '0-1!'", DIFFERS),
    "EVALUATED.sampled": (PICK + "SET e.sampled = true", DIFFERS),
    "EVALUATED.sampled as false": (PICK + "SET e.sampled = false", DIFFERS),
    "EVALUATED.lists": (PICK + "SET e.lists = ['clear']", DIFFERS),
    "EVALUATED.lists of another type": (PICK + "SET e.lists = 'clear'", DIFFERS),
    "EVALUATED.key": (PICK + "SET e.key = e.key + 'x'", LACKS),
    "EVALUATED.key removed": (PICK + "REMOVE e.key", LACKS),
    "EVALUATED.key of another type": (PICK + "SET e.key = 7", LACKS),
    "EVALUATED deleted": (PICK + "DELETE e", LACKS),
    "EVALUATED forged": (
        PICK + "CREATE (m:Account {id: 999999}) CREATE (m)-[f:EVALUATED {key: $project + "
        "'/i:999999', size: 0, alpha: e.alpha}]->(r)",
        "node i:999999 (run 1): EVALUATED in the graph without a prediction",
    ),
    "EVALUATED forged without a key": (
        PICK + "CREATE (m:Account {id: 999999}) CREATE (m)-[f:EVALUATED {size: 0}]->(r)",
        "1 EVALUATED without a key of this project",
    ),
    "MAY_BE.p": (PICK + "MATCH (n)-[m:MAY_BE]->() WITH m LIMIT 1 SET m.p = 0.99", DIFFERS),
    "MAY_BE.p removed": (PICK + "MATCH (n)-[m:MAY_BE]->() WITH m LIMIT 1 REMOVE m.p", DIFFERS),
    "MAY_BE.p as text": (
        PICK + "MATCH (n)-[m:MAY_BE]->() WITH m LIMIT 1 SET m.p = toString(m.p)",
        DIFFERS,
    ),
    "MAY_BE.in_set": (
        PICK + "MATCH (n)-[m:MAY_BE]->() WITH m LIMIT 1 SET m.in_set = NOT m.in_set", DIFFERS,
    ),
    "MAY_BE.in_set as 1": (
        PICK + "MATCH (n)-[m:MAY_BE {in_set: true}]->() WITH m LIMIT 1 SET m.in_set = 1", DIFFERS,
    ),
    "MAY_BE.in_set as 1.0": (
        PICK + "MATCH (n)-[m:MAY_BE {in_set: true}]->() WITH m LIMIT 1 SET m.in_set = 1.0", DIFFERS,
    ),
    "EVALUATED.size as a float": (PICK + "SET e.size = toFloat(e.size)", DIFFERS),
    "EVALUATED forged without a key, in the place of a node that left": (
        PICK + "DETACH DELETE n CREATE (m:Account {id: 999999}) "
        "CREATE (m)-[f:EVALUATED {size: 0}]->(r)",
        "1 EVALUATED without a key of this project",
    ),
    "EVALUATED with another property": (
        PICK + "SET e.note = 'x'", "1 EVALUATED with properties that are not ringfence's",
    ),
    "MAY_BE with another property": (
        PICK + "MATCH (n)-[m:MAY_BE]->() WITH m LIMIT 1 SET m.note = 'x'",
        "MAY_BE: 1 with properties",
    ),
    "AUDITS with another property": (
        TOTAL + "MATCH (a)-[x:AUDITS]->() SET x.note = 'x'", "AUDITS: 1 with properties",
    ),
    "RingfenceClass with another property": (
        "MATCH (c:RingfenceClass {project: $project}) WITH c LIMIT 1 SET c.note = 'x'",
        "RingfenceClass: 1 with properties",
    ),
    "RingfenceClass of no project": (
        "CREATE (:RingfenceClass {name: 'mule'})", "RingfenceClass: 1 of no project",
    ),
    "RingfenceRun of no project": ("CREATE (:RingfenceRun {id: 'x'})", "RingfenceRun: 1 of no"),
    "RingfenceFence with another property": (
        FENCE + "SET f.note = 'x'", "RingfenceFence: 1 with properties",
    ),
    "RingfenceMigration with another property": (
        "MATCH (m:RingfenceMigration {number: 1}) SET m.note = 'x'",
        "RingfenceMigration: 1 with properties",
    ),
    "MAY_BE.in_set removed": (
        PICK + "MATCH (n)-[m:MAY_BE]->() WITH m LIMIT 1 REMOVE m.in_set", DIFFERS,
    ),
    "MAY_BE deleted": (PICK + "MATCH (n)-[m:MAY_BE]->() WITH m LIMIT 1 DELETE m", DIFFERS),
    "MAY_BE deleted, size adjusted": (
        PICK + "MATCH (n)-[m:MAY_BE]->() WITH m, e LIMIT 1 DELETE m SET e.size = e.size - 1",
        DIFFERS,
    ),
    "MAY_BE added": (
        PICK + "MATCH (c:RingfenceClass {project: $project}) WHERE NOT (n)-[:MAY_BE]->(c) "
        "WITH n, c LIMIT 1 CREATE (n)-[:MAY_BE {p: 0.5}]->(c)",
        DIFFERS,
    ),
    "MAY_BE twice": (
        PICK + "MATCH (n)-[m:MAY_BE]->(c) WITH n, m, c LIMIT 1 CREATE (n)-[:MAY_BE {p: m.p}]->(c)",
        DIFFERS,
    ),
    "MAY_BE pointed elsewhere": (
        PICK + "MATCH (n)-[m:MAY_BE]->() WITH n, m LIMIT 1 MATCH (c:RingfenceClass {project: "
        "$project}) WHERE NOT (n)-[:MAY_BE]->(c) WITH n, m, c LIMIT 1 "
        "CREATE (n)-[:MAY_BE {p: m.p}]->(c) DELETE m",
        DIFFERS,
    ),
    "MAY_BE on a node that was never evaluated": (
        "MATCH (c:RingfenceClass {project: $project}) WITH c LIMIT 1 "
        "CREATE (:Account {id: 999999})-[:MAY_BE {p: 0.5}]->(c)",
        "node i:999999: MAY_BE in the graph, but the node was never evaluated",
    ),
    "RingfenceRun.alpha": (RUN + "SET r.alpha = 0.01", "/1': alpha changed"),
    "RingfenceRun.threshold": (RUN + "SET r.threshold = 0.0", "/1': threshold changed"),
    "RingfenceRun.threshold removed": (RUN + "REMOVE r.threshold", "/1': threshold changed"),
    "RingfenceRun.rule": (RUN + "SET r.rule = 'EdgeEx'", "/1': rule changed"),
    "RingfenceRun.at": (RUN + "SET r.at = r.at - duration('PT1S')", "/1': at changed"),
    "RingfenceRun.at as text": (RUN + "SET r.at = toString(r.at)", "/1': at changed"),
    "RingfenceRun.calibration": (RUN + "SET r.calibration = 9", "/1': calibration changed"),
    "RingfenceRun.model": (RUN + "SET r.model = 'x'", "/1': model changed"),
    "RingfenceRun.seq": (RUN + "SET r.seq = 7", "/1': seq changed"),
    "RingfenceRun.project": (RUN + "SET r.project = 'x'", "/1': project changed"),
    "RingfenceRun with another property": (RUN + "SET r.note = 'x'", "/1': note changed"),
    "RingfenceRun.id": (
        RUN + "SET r.id = $project + '/77'",
        "/77': the audit store has never decided this run",
    ),
    "RingfenceRun deleted": (RUN + "DETACH DELETE r", "/1': the node of an applied run is gone"),
    "RingfenceRun without its label": (RUN + "REMOVE r:RingfenceRun", "of an applied run is gone"),
    "RingfenceRun forged": (
        RUN + "CREATE (:RingfenceRun {id: $project + '/50', project: r.project, seq: 50, "
        "at: r.at, rule: r.rule, alpha: r.alpha, model: r.model})",
        "/50': the audit store has never decided this run",
    ),
    "RingfenceClass renamed": (
        "MATCH (c:RingfenceClass {project: $project}) WITH c LIMIT 1 SET c.name = 'nobody'",
        "RingfenceClass 'nobody': no model of this project has such a class",
    ),
    "RingfenceClass.project": (
        "MATCH (c:RingfenceClass {project: $project}) WITH c LIMIT 1 SET c.project = 'x'",
        ": the node is gone",
    ),
    "RingfenceClass deleted": (
        "MATCH (c:RingfenceClass {project: $project}) WITH c LIMIT 1 DETACH DELETE c",
        ": the node is gone",
    ),
    "RingfenceClass merged into another": (
        "MATCH (c:RingfenceClass {project: $project}) WITH collect(c) AS all WITH all[0] AS a, "
        "all[1] AS b MATCH (n)-[m:MAY_BE]->(a) CREATE (n)-[:MAY_BE {p: m.p}]->(b) DELETE m",
        "EVALUATED or MAY_BE relationships are not",
    ),
    "RingfenceClasses swapped": (
        "MATCH (c:RingfenceClass {project: $project}) WITH collect(c) AS all WITH all[0] AS a, "
        "all[1] AS b, all[0].name AS x, all[1].name AS y SET a.name = '' SET b.name = x "
        "SET a.name = y",
        "EVALUATED or MAY_BE relationships are not",
    ),
    "RingfenceClass added": (
        "CREATE (:RingfenceClass {project: $project, name: 'nobody'})",
        "RingfenceClass 'nobody': no model",
    ),
    "CoverageAudit.covered": (TOTAL + "SET a.covered = a.covered + 1", "/1/total': covered"),
    "CoverageAudit.verdict": (TOTAL + "SET a.verdict = 'kept!'", "/1/total': verdict changed"),
    "CoverageAudit.words": (TOTAL + "SET a.words = 'all is well'", "/1/total': words changed"),
    "CoverageAudit.at": (TOTAL + "SET a.at = datetime()", "/1/total': at changed"),
    "CoverageAudit.project": (TOTAL + "SET a.project = 'x'", "/1/total': project changed"),
    "CoverageAudit.id": (TOTAL + "SET a.id = a.id + 'x'", "/1/totalx': no audit has recorded it"),
    "CoverageAudit deleted": (TOTAL + "DETACH DELETE a", "/1/total': the node is gone"),
    "CoverageAudit forged": (
        TOTAL + "CREATE (:CoverageAudit {id: $project + '/9/total', project: a.project, seq: 9, "
        "slice: 'total', verdict: 'kept', at: a.at})",
        "/9/total': no audit has recorded it",
    ),
    "CoverageAudit pointed elsewhere": (
        TOTAL + "MATCH (a)-[x:AUDITS]->() MATCH (o:RingfenceRun {id: $project + '/2'}) "
        "CREATE (a)-[:AUDITS]->(o) DELETE x",
        "/1/total': AUDITS points to",
    ),
    "AUDITS deleted": (TOTAL + "MATCH (a)-[x:AUDITS]->() DELETE x", "/1/total': AUDITS points to"),
    "RingfenceFence.token lowered": (FENCE + "SET f.token = 0", "RingfenceFence: token is 0"),
    "RingfenceFence.token raised": (FENCE + "SET f.token = 99999", "knows of lease"),
    "RingfenceFence.token as text": (FENCE + "SET f.token = 'x'", "RingfenceFence: token is 'x'"),
    "RingfenceFence.token removed": (FENCE + "REMOVE f.token", "RingfenceFence: the node, or its"),
    "RingfenceFence.chain_n lowered": (
        FENCE + "SET f.chain_n = 1",
        "entry 1 is not the one that the graph remembers",
    ),
    "RingfenceFence.chain_n raised": (FENCE + "SET f.chain_n = 9999", "it was cut off"),
    "RingfenceFence.chain_n as text": (FENCE + "SET f.chain_n = 'x'", "memory of the chain can't"),
    "RingfenceFence.chain_hash": (
        FENCE + "SET f.chain_hash = 'ab'",
        "is not the one that the graph remembers",
    ),
    "RingfenceFence.public_key": (
        FENCE + "SET f.public_key = 'ab'",
        "RingfenceFence: public_key is not the signing key",
    ),
    "RingfenceFence.public_key removed": (
        FENCE + "REMOVE f.public_key",
        "RingfenceFence: public_key is not the signing key",
    ),
    "RingfenceFence.chain_n removed": (FENCE + "REMOVE f.chain_n", "has lost its memory"),
    "RingfenceFence deleted": (FENCE + "DELETE f", "has lost its memory"),
    "RingfenceMigration.name": (
        "MATCH (m:RingfenceMigration) SET m.name = 'x'",
        "RingfenceMigration 1: name is 'x'",
    ),
    "RingfenceMigration.checksum": (
        "MATCH (m:RingfenceMigration) SET m.checksum = 'x'",
        "was changed after it had been applied",
    ),
    "RingfenceMigration deleted": (
        "MATCH (m:RingfenceMigration) DELETE m",
        "the graph lacks ringfence's constraints",
    ),
    "RingfenceMigration added": (
        "CREATE (:RingfenceMigration {number: 99, name: 'x', checksum: 'x'})",
        "which this ringfence doesn't know",
    ),
}  # fmt: skip
