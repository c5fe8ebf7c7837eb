"""Which database a mirror belongs to, also where the user may not ask for the database's id."""

import pytest

from ringfence.connector import mirror as mirrors
from ringfence.connector.mapping import RelationMapping, map_one_label
from ringfence.connector.neo4j.access.databases import IDENTITY
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import mirror_identity, sync_mirror
from tests.faults.stand_in import StandIn

LINKS = RelationMapping(0, "LINKS", 0, undirected=True, created_at=None)
MAPPING = map_one_label("Thing", "id", "x", "class", "created_at", "zoned", (LINKS,))
NO_PROCEDURE = (
    "Neo.ClientError.Procedure.ProcedureNotFound",
    "There is no procedure with the name `db.info` registered for this database instance.",
)
NO_RIGHT = "Executing procedure is not allowed for user 'sven' with roles [PUBLIC]."


@pytest.fixture
def open_through(graph):
    """Connections by a stand-in for a server that refuses `db.info()`, where words are given."""
    opened = []

    def open_(refusal=None):
        proxy = StandIn(int(graph.uri.rpartition(":")[2]))
        if refusal is not None:
            proxy.refusals[IDENTITY] = refusal
        opened.append(proxy)
        opened.append(connect(f"bolt://127.0.0.1:{proxy.port}", *graph.auth))
        return opened[-1]

    yield open_
    for one in reversed(opened):
        one.close()


@pytest.mark.parametrize("refusal", [NO_RIGHT, NO_PROCEDURE], ids=["no right", "an old server"])
def test_a_graph_is_read_without_the_databases_id(graph, open_through, tmp_path, refusal):
    graph.run("CREATE (:Thing {id: 1, x: [1.0], created_at: datetime.realtime()})")
    connected = open_through(refusal)
    assert connected.identity is None
    reader = GraphReader(connected, MAPPING, tmp_path, rows=3, overlap_seconds=0.0)
    first = sync_mirror(reader)
    assert (first.rebuilt, list(first.mirror.keys)) == ("first read", ["i:1"])
    mirrors.save(first.mirror, tmp_path)
    again = sync_mirror(GraphReader(connected, MAPPING, tmp_path, rows=3, overlap_seconds=0.0))
    assert again.rebuilt == ""  # the same mirror


def test_without_its_id_a_database_is_that_of_its_address(open_through):
    first, second = open_through(NO_RIGHT), open_through(NO_RIGHT)
    assert mirror_identity(first, MAPPING) == mirror_identity(first, MAPPING)
    assert mirror_identity(first, MAPPING) != mirror_identity(second, MAPPING)
    # the control: by its id it is the same at every address
    first, second = open_through(), open_through()
    assert mirror_identity(first, MAPPING) == mirror_identity(second, MAPPING)
