"""`ringfence query` prints what a person can read."""

import json


def test_nodes_relationships_and_paths_have_cyphers_form(ringfence, project, graph):
    folder, env = project
    graph.run("CREATE (:Card {id: 1, x: range(1, 40)})-[:PAID {sum: 2.5}]->(:Shop {name: 'a'})")
    query = "MATCH p = (c:Card)-[r:PAID]->(s:Shop) RETURN "
    shown = ""
    for what in "crp":  # one column each: wrapped cells of several stand between one another
        shown += "".join(ringfence("query", query + what, cwd=folder, env=env).stdout.split())
    for part in ("(:Card {", "40 in all", "[:PAID {sum: 2.5}]", "->(:Shop"):
        assert part.replace(" ", "") in shown, part
    query += "c, r, s.name AS shop, p"
    (row,) = json.loads(ringfence("query", query, "--json", cwd=folder, env=env).stdout)
    assert row["shop"] == "a"


def test_a_refused_query_is_one_sentence(ringfence, project):
    folder, env = project
    told = ringfence("query", "MATCH (n RETURN n", cwd=folder, env=env, code=1).stderr
    assert "SyntaxError" in told
    assert "gql_status" not in told
    assert len(told.splitlines()) <= 3
