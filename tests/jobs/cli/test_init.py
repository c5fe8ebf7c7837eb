"""`ringfence init`: a file that works, from a live graph."""

import json
import re


def test_init_fills_in_the_file_and_doctor_finds_it_healthy(
    ringfence, project, tmp_path_factory, graph
):
    folder, env = project
    ringfence("sample", "--nodes", "600", cwd=folder, env=env)
    own = tmp_path_factory.mktemp("own")
    told = ringfence("init", "--uri", graph.uri, cwd=own, env=env)
    assert "ringfence doctor" in told.stdout
    text = (own / "ringfence.toml").read_text()
    for line in (
        'label = "Account"',
        'key = "id"',
        'features = "features"',
        'class_property = "kind"',
        'created_at = "created_at"',
        'type = "PAID"',
    ):
        assert line in text
    assert re.search(r'time_kind = "zoned"  # created_at is a ZONED DATETIME', text)
    refused = ringfence("init", "--uri", graph.uri, cwd=own, env=env, code=1)
    assert "--force" in refused.stderr
    before = ringfence("doctor", cwd=own, env=env, code=1).stdout
    assert "ringfence migrate" in before
    ringfence("migrate", cwd=own, env=env)
    after = json.loads(ringfence("doctor", "--json", cwd=own, env=env).stdout)
    levels = {finding["level"]: finding for finding in after}
    assert "error" not in levels
    assert "no trained model" in levels["warning"]["text"]
