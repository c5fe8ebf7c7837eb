"""Exit code 4 by the command line: a broken promise, and a record that somebody changed."""

import sqlite3
from contextlib import closing


def test_a_broken_promise_and_a_changed_record_are_exit_code_four(ringfence, project, graph):
    folder, env = project
    ringfence("sample", "--nodes", "600", cwd=folder, env=env)
    for verb in ("migrate", "train", "score"):
        ringfence(verb, cwd=folder, env=env)
    ringfence("audit", cwd=folder, env=env)  # nothing is known yet, nothing is wrong
    ringfence("verify", cwd=folder, env=env)
    pack = "report", "--pack", "audit.zip"
    ringfence(*pack, cwd=folder, env=env)
    graph.run("MATCH (n:Account)-[:EVALUATED]->() SET n.kind = 'unheard of'")
    assert "broken" in ringfence("audit", cwd=folder, env=env, code=4).stdout
    ringfence("verify", cwd=folder, env=env)  # a broken promise is no changed record
    with closing(sqlite3.connect(folder / ".ringfence" / "audit.db")) as store:
        store.execute("UPDATE prediction SET covered = TRUE")
        store.commit()
    assert "PROBLEM" in ringfence("verify", cwd=folder, env=env, code=4).stdout
    assert "CHANGED" in ringfence(*pack, cwd=folder, env=env, code=4).stdout
