"""The fault harness in short, by a fixed seed; `make test-faults` has a thousand faults."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def harness(neo4j_server, postgres_server, *options):
    """Run the harness as its command on the session's servers and return what it reports."""
    environment = {
        **os.environ,
        "RINGFENCE_TEST_NEO4J_URI": neo4j_server.uri,
        "RINGFENCE_TEST_NEO4J_USER": neo4j_server.user,
        "RINGFENCE_TEST_NEO4J_PASSWORD": neo4j_server.password,
        "RINGFENCE_TEST_POSTGRES_URL": postgres_server.render_as_string(hide_password=False),
    }
    command = [sys.executable, "-m", "tests.faults.run", "--json", *options]
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.stdout, ended.stderr[-3000:]
    return ended.returncode, json.loads(ended.stdout)


@pytest.mark.usefixtures("graph")
def test_faults_lose_double_and_change_nothing_and_a_blinded_run_is_seen(
    neo4j_server, postgres_server
):
    code, report = harness(
        neo4j_server, postgres_server,
        "--faults", "24", "--full-disks", "0", "--controls", "no_recovery",
    )  # fmt: skip
    for store in ("sqlite", "postgresql"):
        seen = report["stores"][store]
        assert seen["violations"] == {}, seen["examples"]
        assert sum(seen["faults"].values()) >= 10
        assert seen["documents"] > 50
    assert report["controls"]["no_recovery"]["lost"] > 0
    assert code == 0
