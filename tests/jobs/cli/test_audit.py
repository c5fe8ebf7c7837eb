"""`ringfence audit`: its exit code."""


def test_a_broken_promise_is_exit_code_two(ringfence, project, graph):
    folder, env = project
    ringfence("sample", "--nodes", "600", cwd=folder, env=env)
    for verb in ("migrate", "train", "score"):
        ringfence(verb, cwd=folder, env=env)
    graph.run("MATCH (n:Account)-[:EVALUATED]->() SET n.kind = 'unheard of'")
    assert "broken" in ringfence("audit", cwd=folder, env=env, code=4).stdout
