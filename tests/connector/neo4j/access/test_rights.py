"""What a user may do: as a server with roles lists it, and as it words what it refuses.

The server is a real one; tests/faults/stand_in.py lets it answer as Neo4j Enterprise documents.
"""

import pytest

from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import map_one_label
from ringfence.connector.neo4j.access.rights import (
    EDITION,
    MIGRATE,
    PRIVILEGES,
    WORK,
    Right,
    Rights,
    missing_grant,
)
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror
from ringfence.connector.neo4j.read.watermark import CLOCK, OPEN_TRANSACTIONS, horizon
from tests.faults.stand_in import StandIn

SECOND = 1_000_000_000
OWN_TRANSACTIONS = OPEN_TRANSACTIONS.replace(
    "YIELD startTime ",
    "YIELD startTime, currentQuery WHERE currentQuery STARTS WITH 'SHOW TRANSACTIONS YIELD' ",
)
MAPPING = map_one_label(
    label="Thing",
    key="id",
    features="x",
    class_property="class",
    created_at="created_at",
    time_kind="zoned",
    relations=(),
)


def listed(*rows):
    """A query with the columns of SHOW USER PRIVILEGES."""
    maps = ", ".join(
        f"{{a: '{access}', b: '{action}', c: '{graph}', d: '{segment}'}}"
        for access, action, graph, segment in rows
    )
    return f"UNWIND [{maps}] AS r RETURN r.a AS access, r.b AS action, r.c AS graph, r.d AS segment"


SEES_ALL = ("GRANTED", "show_transaction", "neo4j", "USER(*)")


@pytest.fixture
def stand_in(graph):
    proxy = StandIn(int(graph.uri.rpartition(":")[2]))
    proxy.queries[EDITION] = "RETURN 'enterprise' AS edition"
    yield proxy
    proxy.close()


@pytest.fixture
def enterprise(stand_in, graph):
    opened = connect(f"bolt://127.0.0.1:{stand_in.port}", *graph.auth)
    yield opened
    opened.close()


def test_community_edition_has_no_roles(connected):
    assert connected.rights == Rights(has_roles=False)
    assert connected.rights.sees_all_transactions("neo4j")
    assert connected.rights.missing("neo4j", WORK) == []


def test_a_server_that_does_not_list_privileges_counts_as_one_without_the_right(enterprise):
    """The real server refuses to list them: it has none."""
    assert enterprise.rights == Rights(has_roles=True, listed=None)
    assert not enterprise.rights.sees_all_transactions("neo4j")
    assert enterprise.rights.missing("neo4j", WORK) == []


@pytest.mark.parametrize(
    ("rows", "sees"),
    [
        ([SEES_ALL], True),
        ([("GRANTED", "transaction_management", "*", "USER(*)")], True),
        ([("GRANTED", "show_transaction", "neo4j", "USER(amelie)")], False),
        ([("GRANTED", "show_transaction", "other", "USER(*)")], False),
        ([SEES_ALL, ("DENIED", "show_transaction", "*", "USER(root)")], False),
        ([("GRANTED", "database_actions", "*", "database")], False),
    ],
)
def test_which_privileges_list_every_transaction(stand_in, enterprise, rows, sees):
    stand_in.queries[PRIVILEGES] = listed(*rows)
    assert enterprise.rights.sees_all_transactions("neo4j") is sees
    assert stand_in.replaced == 2


def test_what_no_privilege_covers_is_named_as_its_grant():
    held = [
        Right(True, "match", "*", "NODE(*)"),
        Right(True, "write", "neo4j", "NODE(*)"),
        Right(True, "create_label", "neo4j", "database"),
        Right(True, "create_reltype", "neo4j", "database"),
        Right(False, "constraint", "neo4j", "database"),
    ]
    missing = Rights(True, tuple(held)).missing("neo4j", (*WORK, *MIGRATE))
    assert missing == [
        "GRANT NAME MANAGEMENT ON DATABASE `neo4j`",
        "GRANT CONSTRAINT MANAGEMENT ON DATABASE `neo4j`",
        "GRANT INDEX MANAGEMENT ON DATABASE `neo4j`",
    ]
    everything = Right(True, "create_propertykey", "*", "database")
    assert Rights(True, (*held, everything)).missing("neo4j", WORK) == []


def test_where_transactions_may_be_hidden_the_watermark_stays_behind_one_that_is_open(
    stand_in, enterprise, graph, tmp_path
):
    """With the hold at 0, the control, the watermark passes a transaction that is still open."""
    stand_in.queries[PRIVILEGES] = listed(("GRANTED", "match", "*", "NODE(*)"))
    stand_in.queries[OPEN_TRANSACTIONS] = OWN_TRANSACTIONS
    graph.run("CREATE (:Thing {id: 1, x: [1.0, 2.0], created_at: datetime.realtime()})")
    reader = GraphReader(enterprise, MAPPING, tmp_path, 10, 0.0, unseen_seconds=60.0)
    mirrors.save(sync_mirror(reader).mirror, tmp_path)
    with graph.driver.session() as session, session.begin_transaction() as late:
        late.run("CREATE (:Thing {id: 2, x: [0.0, 0.0], created_at: datetime.realtime()})")
        started_ns = int(graph.run(CLOCK)[0]["ns"])
        assert horizon(enterprise, 0.0).watermark_ns >= started_ns - SECOND
        assert horizon(enterprise, 0.0).watermark_ns > late_ns(late)
        held = sync_mirror(reader)
        mirrors.save(held.mirror, tmp_path)
        assert held.mirror.watermark_ns < late_ns(late)
        assert "open transactions of other users may not be listed" in held.note
        late.commit()
    caught = sync_mirror(reader)
    assert sorted(caught.mirror.keys) == ["i:1", "i:2"]
    assert caught.rebuilt == ""
    assert len(caught.new_rows) == 1


def late_ns(transaction):
    """When the node was made, as its own transaction sees it."""
    query = "MATCH (n:Thing {id: 2}) WITH n.created_at AS t"
    row = transaction.run(f"{query} RETURN t.epochSeconds * 1000000000 + t.nanosecond AS ns")
    return row.single()["ns"]


def test_a_list_that_is_whole_holds_nothing_back(stand_in, enterprise):
    stand_in.queries[PRIVILEGES] = listed(SEES_ALL)
    now_ns = int(enterprise.read(CLOCK)[0]["ns"])
    end = horizon(enterprise, 3600.0)
    assert end.note == ""
    assert end.watermark_ns > now_ns - 3600 * SECOND


def test_a_refused_list_holds_the_watermark_back(stand_in, enterprise):
    stand_in.refusals["SHOW TRANSACTIONS"] = "Permission has not been granted for user 'u'."
    end = horizon(enterprise, 3600.0)
    assert end.watermark_ns < int(enterprise.read(CLOCK)[0]["ns"]) - 3599 * SECOND
    assert "3600 s behind" in end.note


BY = "for user 'sven' with roles [PUBLIC, reader]."
REFUSED = [
    (
        f"Create node with labels 'RingfenceRun' on database 'neo4j' is not allowed {BY}",
        "GRANT CREATE ON GRAPH `neo4j` NODES `RingfenceRun`",
    ),
    (
        "Delete node with labels 'RingfenceRun,RingfenceFence' on database 'neo4j' is not allowed "
        f"{BY}",
        "GRANT DELETE ON GRAPH `neo4j` NODES `RingfenceRun`, `RingfenceFence`",
    ),
    (
        f"Create relationship with type 'MAY_BE' on database 'neo4j' is not allowed {BY}",
        "GRANT CREATE ON GRAPH `neo4j` RELATIONSHIPS `MAY_BE`",
    ),
    (
        f"Delete relationship with type 'MAY_BE' on database 'neo4j' is not allowed {BY}",
        "GRANT DELETE ON GRAPH `neo4j` RELATIONSHIPS `MAY_BE`",
    ),
    (
        f"Set property for property 'p_value' on database 'neo4j' is not allowed {BY}",
        "GRANT SET PROPERTY {`p_value`} ON GRAPH `neo4j`",
    ),
    (
        f"Creating new property name on database 'neo4j' is not allowed {BY} See GRANT CREATE NEW "
        "PROPERTY NAME ON DATABASE `neo4j`...",
        "GRANT NAME MANAGEMENT ON DATABASE `neo4j`",
    ),
    (
        f"Schema operation 'create_constraint' on database 'neo4j' is not allowed {BY}",
        "GRANT CONSTRAINT MANAGEMENT ON DATABASE `neo4j`",
    ),
    (
        f"Show indexes on database 'neo4j' is not allowed {BY}",
        "GRANT INDEX MANAGEMENT ON DATABASE `neo4j`",
    ),
    (f"Set label for label 'a`b' on database 'neo4j' is not allowed {BY}", ""),
    (
        f"Create node with labels 'a` b' on database 'n`m' is denied {BY}",
        "GRANT CREATE ON GRAPH `n``m` NODES `a`` b`",
    ),
    ("Permission has not been granted for user 'sven'.", ""),
    ("", ""),
]


@pytest.mark.parametrize(("message", "grant"), REFUSED)
def test_a_refusal_names_the_grant(message, grant):
    assert missing_grant(message) == grant


def test_an_error_says_which_right_is_missing_and_keeps_the_rest_to_itself(stand_in, enterprise):
    stand_in.refusals["CREATE (:Thing"] = REFUSED[0][0]
    with pytest.raises(GraphError) as refused:
        enterprise.run("CREATE (:Thing {note: 'secret'})")
    error = refused.value
    assert "the user has no right to it" in error.found
    assert error.next_step.startswith(f"{REFUSED[0][1]} TO <a role of the user>")
    assert "sven" not in str(error)
    assert enterprise.read("RETURN 1 AS one")  # the connection goes on
