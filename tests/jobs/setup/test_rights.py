"""Doctor names each right that the user lacks in Neo4j, and what a short list costs."""

from types import SimpleNamespace

import pytest

from ringfence.connector.neo4j.access.rights import Right, Rights
from ringfence.connector.neo4j.migrate import migrate_graph
from ringfence.jobs.config.settings import EngineSettings
from ringfence.jobs.setup.checks.graph import check_rights

SETTINGS = SimpleNamespace(engine=EngineSettings())
SEES_ALL = Right(True, "show_transaction", "neo4j", "USER(*)")
WORKS = (
    Right(True, "match", "*", "NODE(*)"),
    Right(True, "write", "*", "NODE(*)"),
    Right(True, "token", "neo4j", "database"),
)
SCHEMA = (
    Right(True, "index", "neo4j", "database"),
    Right(True, "constraint", "neo4j", "database"),
)


@pytest.fixture
def findings(connected):
    """What doctor says where the server lists these rights."""

    def of(*rights, listed=True):
        connected.__dict__["rights"] = Rights(True, rights if listed else None)
        return [(one.level, one.text, one.fix) for one in check_rights(connected, SETTINGS)]

    return of


def test_a_user_of_community_edition_lacks_nothing(connected):
    assert list(check_rights(connected, SETTINGS)) == []


def test_each_missing_right_is_an_error_with_its_grant(findings):
    assert findings(*WORKS, *SCHEMA, SEES_ALL) == []  # the control
    texts = {text for level, text, _ in findings(*WORKS[:1], SEES_ALL) if level == "error"}
    assert {text.partition(": ")[2] for text in texts} == {
        "GRANT CREATE ON GRAPH `neo4j`",
        "GRANT DELETE ON GRAPH `neo4j`",
        "GRANT SET PROPERTY {*} ON GRAPH `neo4j`",
        "GRANT NAME MANAGEMENT ON DATABASE `neo4j`",
        "GRANT CONSTRAINT MANAGEMENT ON DATABASE `neo4j`",
        "GRANT INDEX MANAGEMENT ON DATABASE `neo4j`",
    }


def test_a_graph_that_is_migrated_needs_no_right_to_its_schema(findings, connected):
    assert len(findings(*WORKS, SEES_ALL)) == 2
    migrate_graph(connected)
    assert findings(*WORKS, SEES_ALL) == []


def test_a_short_list_of_transactions_is_a_warning_that_says_what_it_costs(findings):
    ((level, text, fix),) = findings(*WORKS, *SCHEMA)
    assert level == "warning"
    assert "says that the user may not see the open transactions of others" in text
    assert "stays 300 s behind the server's clock" in text
    assert fix.startswith("GRANT SHOW TRANSACTION (*) ON DATABASE `neo4j` TO <a role of the user>")
    ((_, text, _),) = findings(listed=False)
    assert "does not say whether the user may see" in text
