"""The tool `lists` on a made-up store: promises before numbers, texts of the graph marked."""

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import open_store
from ringfence.jobs.config.load import load
from ringfence.jobs.mcp import answers, promises
from ringfence.jobs.mcp.untrusted import MARK
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.jobs.cli.test_triage import LISTS, TOML


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("lists") / "ringfence.toml"
    path.write_text(TOML + LISTS)
    loaded = load(path)
    store = open_store(loaded.audit.url)
    fill_store(store, loaded, Plan(runs=3, per_run=120))
    store.close()
    return loaded


def test_the_answer_has_promises_verdicts_and_nodes_by_pile(settings):
    told = answers.lists(settings, None, "", 500)
    assert next(iter(told)) == "promise"
    assert told["promise"] == promises.LISTS
    assert told["run"] == 3
    assert sum(told["piles"].values()) == len(told["nodes"]) == 120
    assert {row["over"] for row in told["so_far"]} >= {"total", "window"}
    assert all(set(node["node"]) == {MARK} for node in told["nodes"])
    few = answers.lists(settings, 1, "investigate", 2)
    assert few["run"] == 1
    assert {node["pile"] for node in few["nodes"]} == {"investigate"}
    assert few["left_out"] == few["piles"]["investigate"] - 2


def test_what_is_not_there_is_refused_in_three_parts(settings):
    for asked in ((None, "burn", 5), (99, "", 5)):
        with pytest.raises(ConfigError) as refused:
            answers.lists(settings, *asked)
        assert refused.value.needed
        assert refused.value.next_step
