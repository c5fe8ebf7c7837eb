"""Several labels in the configuration: what is read, and a clear word for each contradiction."""

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.connector.mapping import ColumnMapping, NodeMapping, RelationMapping
from ringfence.jobs.config.load import load

TYPED = """
[graph]
class_property = "status"

[[graph.nodes]]
label = "Airport"
key = "faa"
columns = ["name", "altitude"]

[[graph.nodes]]
label = "Flight"
key = "id"
role = "classified"
columns = ["hour", "tailnum", "carrier"]

[[graph.relationships]]
from = "Flight"
type = "DEPARTS"
to = "Airport"

[graph.columns.Flight]
tailnum = "leave"
carrier = "category"
distance = { kind = "number", options = { log = true } }
"""

ONE_LABEL = '[graph]\nlabel = "A"\nkey = "id"\nfeatures = "x"\nclass_property = "kind"\n'


@pytest.fixture
def load_text(tmp_path):
    def load_text(text):
        path = tmp_path / "ringfence.toml"
        path.write_text(text, encoding="utf-8")
        return load(path, {})

    return load_text


def test_the_classified_label_stands_first_whatever_the_order_of_the_file(load_text):
    mapping = load_text(TYPED).mapping()
    flight = NodeMapping(
        "Flight",
        "id",
        (
            ColumnMapping("hour"),
            ColumnMapping("carrier", "category"),
            ColumnMapping("distance", "number", {"log": True}),
        ),
    )
    assert mapping.typed.nodes[0] == mapping.typed.classified == flight
    assert mapping.typed.nodes[1].column_names == ("name", "altitude")
    assert mapping.typed.relations == (RelationMapping(0, "DEPARTS", 1),)
    assert (mapping.label, mapping.key, mapping.class_property) == ("Flight", "id", "status")
    assert (mapping.features, mapping.relationships, mapping.created_at) == ((), (), "")


def test_a_creation_time_is_the_watermark_and_without_one_new_nodes_are_unknown_keys(load_text):
    assert load_text(TYPED).mapping().typed.arrival == "keys"
    timed = TYPED.replace('role = "classified"', 'role = "classified"\ncreated_at = "written"')
    mapping = load_text(timed).mapping()
    assert (mapping.typed.arrival, mapping.created_at) == ("created_at", "written")


def test_relationships_have_no_creation_time_beside_labels_unless_it_is_named(load_text):
    assert load_text(TYPED).mapping().typed.relations[0].created_at is None
    named = load_text(TYPED.replace('to = "Airport"', 'to = "Airport"\ncreated_at = "t"'))
    assert named.mapping().typed.relations[0].created_at == "t"
    one = load_text(ONE_LABEL + '[[graph.relationships]]\ntype = "PAID"\n')
    assert one.mapping().relationships[0].created_at == "created_at"


def test_the_mirror_of_a_one_label_project_keeps_its_identity(load_text):
    assert "typed" not in repr(load_text(ONE_LABEL).mapping())


RELATION = '\n[[graph.relationships]]\nfrom = "Flight"\ntype = "X"\nto = "Airport"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TYPED.replace('role = "classified"\n', ""), r"0 labels have role = \"classified\""),
        (
            TYPED.replace('key = "faa"', 'key = "faa"\nrole = "classified"'),
            r"2 labels \(Airport, Flight\) have role = \"classified\"",
        ),
        (TYPED.replace('"Airport"', '"Flight"'), "the label Flight is named twice"),
        (TYPED.replace('to = "Airport"', 'to = "Airprt"'), "to = 'Airprt' is none of the labels"),
        (TYPED.replace('to = "Airport"\n', ""), "DEPARTS: to is missing"),
        (TYPED + RELATION + RELATION, "Flight X Airport is named twice"),
        (TYPED.replace('"hour"', '"hour", "hour"'), "column hour is named twice"),
        (TYPED.replace('"hour"', '"status"'), "the column status is the class_property"),
        (
            TYPED.replace('"hour"', '"at"').replace("[graph]", '[graph]\nlabelled_at = "at"'),
            "the column at is labelled_at",
        ),
        (TYPED.replace("columns.Flight", "columns.Fligth"), "names 'Fligth', which no"),
        (TYPED.replace('key = "faa"', 'key = ""'), "a name is empty"),
        (TYPED.replace('key = "faa"\n', ""), r"\[graph\] nodes.0.key is missing"),
        (TYPED.replace('key = "faa"', 'kee = "faa"'), "did you mean key"),
        (TYPED.replace('from = "Flight"', 'form = "Flight"'), "did you mean from"),
        (TYPED.replace('role = "classified"', 'role = "main"'), "'classified' or 'context'"),
        (
            TYPED.replace("[graph]", '[graph]\nlabel = "Flight"'),
            r"label stands beside \[\[graph.nodes\]\]",
        ),
        (
            TYPED.replace('from = "Flight"', 'from = "Airport"\nafter_evaluation = true'),
            "needs Flight, the classified label",
        ),
        (TYPED.replace('"leave"', "{ us = false }"), "us"),
        (ONE_LABEL + RELATION, r"relationship X has from, to or after_evaluation"),
        (ONE_LABEL + '[graph.columns.A]\nx = "leave"\n', r"columns needs \[\[graph.nodes\]\]"),
        (ONE_LABEL.replace('"x"', "[]"), "features names no property"),
        (ONE_LABEL.replace('features = "x"\n', ""), "features is missing"),
    ],
)
def test_a_contradiction_is_named(load_text, text, message):
    with pytest.raises(ConfigError, match=message):
        load_text(text)


def test_more_relationship_types_than_the_mirror_holds_are_refused(load_text):
    many = "".join(RELATION.replace('"X"', f'"X{i}"') for i in range(128))
    with pytest.raises(ConfigError, match="129 types; 128 are the most"):
        load_text(TYPED + many)
