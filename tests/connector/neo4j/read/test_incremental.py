"""Reading what is new: creation times, late commits, quarantine, relationships that come early."""

from dataclasses import replace

import numpy as np
import pytest

from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import ColumnMapping, RelationMapping, map_one_label
from ringfence.connector.neo4j.migrate import create_user_indexes
from ringfence.connector.neo4j.read import append, properties, sync, whole
from ringfence.connector.neo4j.read.accounting import Difference
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror
from ringfence.connector.neo4j.read.watermark import check_time_types, horizon
from tests.connector.neo4j.read.forms import (
    FORMS,
    ONE_LABEL,
    SEVERAL_LABELS,
    add_context,
    contents,
    in_form,
    links,
    new_keys,
    node_keys,
)

MAPPING = map_one_label(
    label="Thing",
    key="id",
    features="x",
    class_property="class",
    created_at="created_at",
    time_kind="zoned",
    relations=(RelationMapping(0, "LINKS", 0, undirected=True, created_at="created_at"),),
)
NOW = "datetime.realtime()"


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture
def reader(graph, connected, tmp_path, form):
    add_context(form, graph)
    mapping = in_form(form, MAPPING)
    return GraphReader(connected, mapping, tmp_path, rows=3, overlap_seconds=0.0)


only_one_label = pytest.mark.parametrize("form", [ONE_LABEL], indirect=True)


def read(reader, *, whole=False):
    found = sync_mirror(reader, whole=whole)
    mirrors.save(found.mirror, reader.folder)
    return found


def things(graph, *ids, created=NOW, **extra):
    for one in ids:
        graph.run(
            f"CREATE (n:Thing {{id: $id, x: [1.0, 2.0], created_at: {created}}}) SET n += $extra",
            id=one,
            extra=extra,
        )


def test_a_second_read_brings_only_what_is_new(graph, reader):
    things(graph, 1, 2, 3, 4)
    first = read(reader)
    assert sorted(node_keys(first.mirror)) == ["i:1", "i:2", "i:3", "i:4"]
    assert first.rebuilt == "first read"
    things(graph, 5)
    second = read(reader)
    assert second.rebuilt == ""
    assert new_keys(second) == ["i:5"]
    assert second.new_rows.tolist() == [second.mirror.size - 1]
    assert second.mirror.keys[-1] == "i:5"
    assert len(read(reader).new_rows) == 0


def test_a_transaction_that_commits_late_is_not_missed(graph, reader):
    things(graph, 1)
    read(reader)
    with graph.driver.session() as session, session.begin_transaction() as late:
        late.run(f"CREATE (:Thing {{id: 2, x: [0.0, 0.0], created_at: {NOW}}})").consume()
        things(graph, 3)
        held = read(reader)
        assert node_keys(held.mirror) == ["i:1", "i:3"]
        late.commit()
    caught = read(reader)
    assert caught.mirror.keys[-1] == "i:2"
    assert caught.rebuilt == ""  # found by the watermark, not by counting


def test_without_the_cap_the_late_commit_would_have_been_skipped(graph, reader, monkeypatch):
    """The negative control of the test before: the watermark at the server's clock alone."""
    from ringfence.connector.neo4j.read.watermark import CLOCK, Horizon

    def uncapped(graph, _):
        return Horizon(int(graph.read(CLOCK)[0]["ns"]), "")

    for module in (append, whole):
        monkeypatch.setattr(module, "horizon", uncapped)
    monkeypatch.setattr(sync, "settle_accounts", lambda *_: Difference())
    things(graph, 1)
    read(reader)
    with graph.driver.session() as session, session.begin_transaction() as late:
        late.run(f"CREATE (:Thing {{id: 2, x: [0.0, 0.0], created_at: {NOW}}})").consume()
        read(reader)
        late.commit()
    assert "i:2" not in read(reader).mirror.keys


def test_the_watermark_stops_at_the_oldest_open_transaction(graph, connected):
    with graph.driver.session() as session, session.begin_transaction() as held:
        held.run("RETURN 1").consume()
        first, second = horizon(connected), horizon(connected)
        assert first.watermark_ns == second.watermark_ns
    assert horizon(connected).watermark_ns > first.watermark_ns


def test_a_backdated_node_is_found_by_counting(graph, reader):
    things(graph, 1)
    read(reader)
    things(graph, 2, created="datetime('2001-01-01T00:00:00Z')")
    found = read(reader)
    assert (found.rebuilt, "read 1 nodes that had been missed" in found.note) == ("", True)
    assert new_keys(found) == ["i:2"]
    assert sorted(node_keys(found.mirror)) == ["i:1", "i:2"]


def test_a_deleted_node_leaves_the_mirror(graph, reader):
    things(graph, 1, 2)
    read(reader)
    graph.run("MATCH (n:Thing {id: 1}) DELETE n")
    found = read(reader)
    assert (found.rebuilt, "1 nodes were deleted" in found.note) == ("", True)
    assert node_keys(found.mirror) == ["i:2"]


def test_a_deleted_relationship_leaves_the_mirror(graph, reader, form):
    things(graph, 1, 2)
    graph.run(
        "MATCH (a:Thing {id: 1}), (b:Thing {id: 2}) "
        "CREATE (a)-[:LINKS {created_at: datetime.realtime()}]->(b)"
    )
    assert read(reader).mirror.edges.shape == (3, 1)
    graph.run("MATCH ()-[r:LINKS]->() DELETE r")
    found = read(reader)
    name = "LINKS" if form == ONE_LABEL else "(:Thing)-[:LINKS]->(:Thing)"
    assert (found.rebuilt, f"read all relationships again ({name})" in found.note) == ("", True)
    assert found.mirror.edges.shape == (3, 0)


def test_a_relationship_that_comes_before_its_node_waits_for_it(graph, reader):
    things(graph, 1)
    read(reader)
    graph.run(
        "MATCH (a:Thing {id: 1}) CREATE (a)-[:LINKS {created_at: datetime.realtime()}]->"
        "(:Thing {id: 2, x: [0.0], created_at: 'soon'})"
    )
    waiting = read(reader)
    assert waiting.mirror.dangling == [("i:1", "i:2", 0)]
    graph.run("MATCH (n:Thing {id: 2}) SET n.x = [0.0, 1.0], n.created_at = datetime.realtime()")
    joined = read(reader)
    assert joined.mirror.dangling == []
    assert links(joined.mirror) == {("i:1", "i:2", 0)}


def test_parallel_relationships_and_repeats_collapse(graph, reader):
    things(graph, 1, 2)
    for _ in range(3):
        graph.run(
            "MATCH (a:Thing {id: 1}), (b:Thing {id: 2}) "
            "CREATE (a)-[:LINKS {created_at: datetime.realtime()}]->(b)"
        )
    assert read(reader).mirror.edges.shape == (3, 1)


def test_relationships_to_other_labels_are_left_out(graph, reader):
    things(graph, 1)
    graph.run(
        "MATCH (a:Thing {id: 1}) CREATE (a)-[:LINKS {created_at: datetime.realtime()}]->(:Other)"
    )
    found = read(reader)
    assert found.mirror.edges.shape == (3, 0)
    assert found.mirror.dangling == []


def test_relationships_without_times_are_read_with_their_nodes(graph, connected, tmp_path, form):
    timeless = map_one_label(
        "Thing", "id", "x", "class", "created_at", "zoned", (RelationMapping(0, "LINKS", 0),)
    )
    mapping = in_form(form, timeless)
    reader = GraphReader(connected, mapping, tmp_path, rows=10, overlap_seconds=0.0)
    things(graph, 1)
    read(reader)
    things(graph, 2)
    graph.run("MATCH (a:Thing {id: 1}), (b:Thing {id: 2}) CREATE (a)-[:LINKS]->(b)")
    assert links(read(reader).mirror) == {("i:1", "i:2", 0)}


REASONS = {
    "missing features": ({"x": None}, "features are missing"),
    "too short": ({"x": [1.0]}, "1 features; 2 are needed"),
    "text": ({"x": "1,2"}, "features are a str; a list is needed"),
    "words": ({"x": ["1.0", "2.0"]}, "a feature is a str; numbers are needed"),
    "nan": ({"x": [1.0, float("nan")]}, "a feature is NaN, infinite or too large for 32 bits"),
    "infinite": ({"x": [float("inf"), 1.0]}, "a feature is NaN, infinite or too large for 32 bits"),
    "too large": ({"x": [1e300, 1.0]}, "a feature is NaN, infinite or too large for 32 bits"),
    "no time": ({"created_at": None}, "created_at is missing"),
    "no key": ({"id": None}, "the key is missing"),
    "a flag as key": ({"id": True}, "a key of type bool"),
    "a long key": ({"id": "k" * 600}, "the key has 602 characters; 512 are the most"),
    "a class of floats": ({"class": 1.5}, "the class is a float; text or an integer is needed"),
    "a text as a class": ({"class": "é" * 257}, "the class has 514 bytes of UTF-8; 512 are"),
}


OF_ANY_COLUMNS = ("no time", "no key", "a flag as key", "a long key", "a text as a class")


@pytest.mark.parametrize(
    ("form", "case"),
    [
        *((ONE_LABEL, case) for case in REASONS),
        *((SEVERAL_LABELS, case) for case in OF_ANY_COLUMNS),
    ],
    indirect=["form"],
)
def test_a_node_that_can_not_be_used_goes_to_quarantine_with_its_reason(graph, reader, case):
    change, reason = REASONS[case]
    things(graph, 1, 2)
    things(graph, 77)
    graph.run("MATCH (n:Thing {id: 77}) SET n += $change", change=change)
    found = read(reader)
    assert sorted(node_keys(found.mirror)) == ["i:1", "i:2"]
    (bad,) = found.mirror.rejected.values()
    assert bad.reason.startswith(reason)
    assert read(reader).rebuilt == ""  # counted as seen: no endless rebuilding


@pytest.mark.parametrize(
    ("kind", "now", "old"),
    [
        ("zoned", "datetime.realtime()", "datetime('2020-05-05T10:00:00.123456789+02:00')"),
        (
            "local",
            "localdatetime.realtime('UTC')",
            "localdatetime('2020-05-05T08:00:00.123456789')",
        ),
        ("milliseconds", "datetime.realtime().epochMillis", "1588665600123"),
    ],
)
def test_each_kind_of_time_is_read_exactly(graph, connected, tmp_path, form, kind, now, old):
    mapping = in_form(form, map_one_label("Thing", "id", "x", "class", "created_at", kind, ()))
    reader = GraphReader(connected, mapping, tmp_path, rows=10, overlap_seconds=0.0)
    things(graph, 1, created=old)
    first = read(reader)
    expected = 1_588_665_600_123_000_000 if kind == "milliseconds" else 1_588_665_600_123_456_789
    assert first.mirror.created_ns.tolist() == [expected]
    things(graph, 2, created=now)
    second = read(reader)
    assert (second.rebuilt, node_keys(second.mirror)) == ("", ["i:1", "i:2"])


def test_a_time_kind_that_is_wrong_for_nearly_all_is_refused_with_a_census(graph, reader):
    things(graph, *range(2, 12), created="timestamp()")
    things(graph, 1)
    with pytest.raises(GraphError, match=r"10 INTEGER, 1 ZONED DATETIME"):
        read(reader)


def test_a_sample_that_is_unlike_the_rest_hides_no_wrong_time_kind(graph, reader, monkeypatch):
    monkeypatch.setattr(whole, "SAMPLE_NODES", 1)
    things(graph, 1)
    things(graph, *range(2, 13), created="timestamp()")
    sampled = []
    check = whole.check_time_types
    monkeypatch.setattr(
        whole, "check_time_types", lambda *a, **k: (sampled.append("sample" in k), check(*a, **k))
    )
    with pytest.raises(GraphError, match=r"11 INTEGER, 1 ZONED DATETIME"):
        read(reader)
    assert sampled in ([True, False], [True])  # whichever node the server gave as its first


def test_a_first_read_of_usual_nodes_takes_no_census_of_all(graph, reader, form, monkeypatch):
    asked = []
    check, width = whole.check_time_types, properties.feature_width
    monkeypatch.setattr(
        whole, "check_time_types", lambda *a, **k: (asked.append(k.get("sample")), check(*a, **k))
    )
    for module in (properties, whole):
        monkeypatch.setattr(
            module, "feature_width", lambda g, m, *k: (asked.append(*k), width(g, m, *k))[1]
        )
    things(graph, 1, 2, 3)
    assert len(node_keys(read(reader).mirror)) == 3
    widths = [whole.SAMPLE_NODES] if form == ONE_LABEL else []  # raw columns have none
    assert asked == [whole.SAMPLE_NODES, *widths]


@only_one_label
def test_a_sample_of_another_width_than_most_is_corrected(graph, reader, monkeypatch):
    """Whichever nodes a sample has, the mirror holds those of the commonest width."""
    width = properties.feature_width
    things(graph, 1, 2, 3)
    usual = width(reader.graph, reader.mapping)
    graph.run("CREATE (:Thing {id: 9, x: [1.0], created_at: datetime()})")
    for module in (properties, whole):
        monkeypatch.setattr(
            module, "feature_width", lambda g, m, sample=None: 1 if sample else width(g, m)
        )
    mirror = read(reader).mirror
    assert (mirror.width, sorted(mirror.keys)) == (usual, ["i:1", "i:2", "i:3"])
    assert len(mirror.rejected) == 1


def test_doctor_names_every_other_type_of_time(graph, connected):
    things(graph, 1, 2)
    things(graph, 3, created="timestamp()")
    with pytest.raises(GraphError, match=r"2 ZONED DATETIME, 1 INTEGER"):
        check_time_types(connected, MAPPING)


USUAL = {
    "zoned": "datetime('2020-05-05T10:00:00Z')",
    "local": "localdatetime('2020-05-05T10:00:00')",
    "milliseconds": "1588665600123",
}
ODD = {  # Cypher, and what the quarantine says of it, where it differs from the configured kind
    "zoned": ("datetime('2020-05-05T10:00:00Z')", "2020-05-05T10:00:00Z, ZONED DATETIME"),
    "local": ("localdatetime('2020-05-05T10:00')", "2020-05-05T10:00:00, LOCAL DATETIME"),
    "date": ("date('2020-05-05')", "2020-05-05, DATE"),
    "zoned clock": ("time('10:00:00Z')", "10:00:00Z, ZONED TIME"),
    "local clock": ("localtime('10:00:00')", "10:00:00, LOCAL TIME"),
    "duration": ("duration('P1D')", "P1D, DURATION"),
    "text": ("'yesterday'", "yesterday, STRING"),
    "milliseconds": ("1588665600123", "1588665600123, INTEGER"),
    "float": ("0.5", "0.5, FLOAT"),
    "list": ("[1, 2]", "a value, LIST<INTEGER NOT NULL>"),
}
OUTSIDE = {
    "zoned": ("datetime('{}-01-01T00:00:00Z')", "{}-01-01T00:00:00Z, outside 1677 to 2262"),
    "local": ("localdatetime('{}-01-01T00:00:00')", "{}-01-01T00:00:00, outside 1677 to 2262"),
    "milliseconds": (
        "datetime('{}-01-01T00:00:00Z').epochMillis",
        "{}, outside 1677 to 2262",
    ),
}
CASES = [(kind, *ODD[odd]) for kind in USUAL for odd in ODD if odd != kind] + [
    (kind, made.format(year), None if kind == "milliseconds" else said.format(year))
    for kind, (made, said) in OUTSIDE.items()
    for year in ("2263", "1500", "+12345")
]


@pytest.mark.parametrize("when", ["first read", "later"])
@pytest.mark.parametrize(
    ("form", "kind", "odd", "said"),
    [*((ONE_LABEL, *case) for case in CASES), *((SEVERAL_LABELS, *case) for case in CASES[::7])],
    indirect=["form"],
)
def test_one_odd_creation_time_goes_to_quarantine_and_the_run_goes_on(
    graph, connected, tmp_path, form, kind, odd, said, when
):
    mapping = in_form(form, map_one_label("Thing", "id", "x", "class", "created_at", kind, ()))
    reader = GraphReader(connected, mapping, tmp_path, rows=10, overlap_seconds=0.0)
    things(graph, 1, 2, created=USUAL[kind])
    if when == "later":
        read(reader)
    things(graph, "odd", created=odd)
    things(graph, 3, created=f"{USUAL[kind]}")
    found = read(reader).mirror
    assert sorted(node_keys(found)) == ["i:1", "i:2", "i:3"]
    (bad,) = found.rejected.values()
    assert bad.node_key == "s:odd"
    assert bad.reason.startswith("created_at can't be used: ")
    assert said is None or bad.reason.endswith(said)
    assert read(reader).rebuilt == ""
    graph.run(f"MATCH (n:Thing {{id: 'odd'}}) SET n.created_at = {USUAL[kind]}")
    repaired = read(reader).mirror
    assert (sorted(node_keys(repaired))[-1], repaired.rejected) == ("s:odd", {})


@only_one_label
def test_the_last_and_first_seconds_that_nanoseconds_hold_are_read(graph, reader):
    things(graph, 1, created="datetime({epochSeconds: 9223372035, nanosecond: 999999999})")
    things(graph, 2, created="datetime({epochSeconds: -9223372035})")
    assert sorted(read(reader).mirror.created_ns.tolist()) == [
        -9_223_372_035_000_000_000,
        9_223_372_035_999_999_999,
    ]


def test_several_numeric_properties_serve_as_features(graph, connected, tmp_path):
    mapping = map_one_label("Thing", "id", ("a", "b"), "class", "created_at", "zoned", ())
    things(graph, 1, a=1, b=2.5)
    things(graph, 2, a=1)
    things(graph, 3, a=True, b=0)
    found = read(GraphReader(connected, mapping, tmp_path, rows=10, overlap_seconds=0.0))
    assert sorted(found.mirror.features.tolist()) == [[1.0, 0.0], [1.0, 2.5]]
    assert [bad.reason for bad in found.mirror.rejected.values()] == ["a feature is missing"]


def test_one_and_text_one_are_two_nodes(graph, reader):
    things(graph, 1, "1", "é", "e\u0301")
    assert set(node_keys(read(reader).mirror)) == {"i:1", "s:1", "s:é", "s:e\u0301"}


def test_an_empty_graph_and_duplicate_keys_are_refused(graph, reader, connected):
    with pytest.raises(GraphError, match="no :Thing nodes"):
        read(reader)
    things(graph, 7, 7)
    with pytest.raises(GraphError, match="2 :Thing nodes have only 1 different keys"):
        read(reader)
    with pytest.raises(GraphError, match=r"not unique: 7 \(2 nodes\)"):
        create_user_indexes(connected, MAPPING)


def test_a_torn_or_foreign_mirror_is_rebuilt(graph, reader, form):
    things(graph, 1, 2)
    read(reader)
    path = reader.folder / mirrors.FILE
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert read(reader).rebuilt == "first read"
    (written,) = reader.folder.glob("*/features" if form == ONE_LABEL else "*/raw.0.text")
    broken = bytearray(written.read_bytes())
    broken[len(broken) // 2] ^= 0xFF
    written.write_bytes(bytes(broken))
    found = read(reader)
    assert found.rebuilt == "first read"
    assert sorted(node_keys(found.mirror)) == ["i:1", "i:2"]
    assert mirrors.load(reader.folder, "another graph") is None


def test_the_stored_mirror_equals_a_fresh_read(graph, reader):
    things(graph, 1, 2, 3, **{"class": "a"})
    graph.run(
        "MATCH (a:Thing), (b:Thing) WHERE a.id < b.id "
        "CREATE (a)-[:LINKS {created_at: datetime.realtime()}]->(b)"
    )
    read(reader)
    kept, fresh = read(reader).mirror, sync_mirror(reader, whole=True).mirror
    for name in ("features", "labels", "classes", "edges"):
        assert np.array_equal(getattr(kept, name), getattr(fresh, name))
    assert contents(kept) == contents(fresh)
    assert (list(kept.keys), kept.class_names) == (list(fresh.keys), fresh.class_names)


@only_one_label
def test_byte_arrays_of_float32_serve_as_features(graph, reader):
    packed = np.array([[1.5, -2.0], [0.25, 3.0]], "<f4")
    for one in range(2):
        graph.run(
            f"CREATE (:Thing {{id: $id, x: $x, created_at: {NOW}}})",
            id=one,
            x=packed[one].tobytes(),
        )
    bad = {7: b"\x00" * 12, 8: np.array([np.nan, 0], "<f4").tobytes()}
    for key, value in bad.items():
        graph.run(f"CREATE (:Thing {{id: $id, x: $x, created_at: {NOW}}})", id=key, x=value)
    found = read(reader).mirror
    assert dict(zip(found.keys, found.features.tolist(), strict=True)) == {
        "i:0": [1.5, -2.0],
        "i:1": [0.25, 3.0],
    }
    assert sorted(one.reason for one in found.rejected.values()) == [
        "12 bytes of features; 8 are needed",
        "a feature is NaN, infinite or too large for 32 bits",
    ]


def test_blocks_of_any_size_bring_the_same_graph(graph, connected, tmp_path, form):
    things(graph, *range(1, 8), **{"class": 3})
    things(graph, "eight", None)
    graph.run(
        "MATCH (a:Thing), (b:Thing) WHERE a.id < b.id OR b.id IS NULL OR a.id IS NULL "
        "CREATE (a)-[:LINKS {created_at: datetime.realtime()}]->(b)"
    )
    seen = []
    for rows in (1, 2, 5, 100):
        mapping = in_form(form, MAPPING)
        reader = GraphReader(connected, mapping, tmp_path / str(rows), rows, overlap_seconds=0.0)
        mirror = read(reader).mirror
        ends = sorted(links(mirror))
        seen.append((sorted(mirror.keys), ends, len(mirror.rejected), mirror.class_names))
    assert len(seen[0][1]) == 21
    assert seen.count(seen[0]) == 4


UNUSABLE = {
    ONE_LABEL: ("n.x = null", "n.x = [3.0, 4.0]"),
    SEVERAL_LABELS: ("n.created_at = null", "n.created_at = datetime('2020-01-01T00:00:00Z')"),
}


def test_a_repaired_node_leaves_quarantine_with_its_relationships(graph, reader, form):
    things(graph, 1, 2)
    things(graph, 77)
    spoil, repair = UNUSABLE[form]
    graph.run(f"MATCH (n:Thing {{id: 77}}) SET {spoil}")
    graph.run(
        "MATCH (a:Thing {id: 1}), (b:Thing {id: 77}) "
        "CREATE (a)-[:LINKS {created_at: datetime.realtime()}]->(b)"
    )
    assert len(read(reader).mirror.rejected) == 1
    assert len(read(reader).mirror.rejected) == 1  # still unusable, still listed once
    graph.run(f"MATCH (n:Thing {{id: 77}}) SET {repair}")
    repaired = read(reader)
    assert repaired.rebuilt == ""
    assert repaired.mirror.rejected == {}
    assert repaired.mirror.keys[-1] == "i:77"
    assert links(repaired.mirror) == {("i:1", "i:77", 0)}
    assert new_keys(repaired) == ["i:77"]


def test_a_mirror_belongs_to_the_names_that_are_read_into_it(connected):
    def identity(mapping):
        return sync.mirror_identity(connected, mapping)

    (links,) = MAPPING.relations
    numbers = map_one_label("Thing", "id", ["x"], "class", "created_at", "zoned", [links])
    columns = replace(MAPPING, features_are_strict=False)
    others = (
        numbers,
        columns,
        replace(MAPPING, class_property="kind"),
        replace(MAPPING, relations=(replace(links, created_at=None),)),
        replace(MAPPING, nodes=(replace(MAPPING.classified, key="name"),)),
    )
    assert len({identity(mapping) for mapping in (MAPPING, *others)}) == 1 + len(others)
    directed = replace(MAPPING, relations=(replace(links, undirected=False),))
    assert identity(directed) == identity(MAPPING)  # directions are read whatever they mean
    guessed = replace(columns, nodes=(replace(MAPPING.classified, columns=(ColumnMapping("x"),)),))
    assert identity(guessed) == identity(columns)  # raw columns are read as they stand
