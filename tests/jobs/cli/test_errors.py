"""What a person reads when a command cannot be done."""

import json


def test_errors_say_what_was_found_needed_and_what_to_type(ringfence, project, tmp_path_factory):
    folder, env = project
    missing = ringfence("score", cwd=tmp_path_factory.mktemp("empty"), code=1)
    assert "ringfence init" in missing.stderr
    assert "Traceback" not in missing.stderr
    wrong = ringfence("status", cwd=folder, env={"RINGFENCE_CONFORMAL_ALPHA": "7"}, code=1)
    assert "alpha" in wrong.stderr
    refused = ringfence(
        "migrate", "--json", cwd=folder, env=env | {"RINGFENCE_NEO4J_PASSWORD": "wrong"}, code=1
    )
    assert json.loads(refused.stderr)["next"].startswith("export RINGFENCE_NEO4J_PASSWORD")
    unmigrated = ringfence("train", cwd=folder, env=env, code=1)
    assert "ringfence migrate" in unmigrated.stderr
    unwritten = ringfence("query", "MATCH (n) DETACH DELETE n", cwd=folder, env=env, code=1)
    assert "refused" in unwritten.stderr
