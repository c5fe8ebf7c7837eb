"""The verbs one after the other, in the order in which a person meets them."""

import json


def test_the_whole_line_by_commands(ringfence, project):
    folder, env = project
    loaded = ringfence("sample", "--nodes", "600", "--json", cwd=folder, env=env)
    assert json.loads(loaded.stdout)["nodes"] == 600
    first = json.loads(ringfence("migrate", "--json", cwd=folder, env=env).stdout)["done"]
    assert any("SQL 0001" in line for line in first)
    assert "nothing to do" in ringfence("migrate", cwd=folder, env=env).stdout
    assert "Trained GCN" in ringfence("train", cwd=folder, env=env).stdout
    scored = ringfence("score", cwd=folder, env=env).stdout
    assert "NodeEx" in scored
    assert "naive" in scored
    assert "Not enough known yet" in ringfence("audit", cwd=folder, env=env).stdout
    status = json.loads(ringfence("status", "--json", cwd=folder, env=env).stdout)
    assert status["runs"][0]["state"] == "applied"
    assert status["evaluated"] == status["unknown"] == status["runs"][0]["n_evaluated"]
    assert "Last runs" in ringfence("status", cwd=folder, env=env).stdout
    rows = ringfence(
        "query",
        "MATCH (n)-[r:MAY_BE]->(c:RingfenceClass) RETURN n.id AS id, c.name AS class, r.p AS p",
        "--json",
        cwd=folder,
        env=env,
    )
    assert all(0.1 < row["p"] <= 1 for row in json.loads(rows.stdout))
    doctor = json.loads(ringfence("doctor", "--json", cwd=folder, env=env).stdout)
    assert {finding["level"] for finding in doctor} == {"ok"}
