"""Several labels in the configuration: what is read, and a clear word for each contradiction."""

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.connector.mapping import ColumnMapping, GraphMapping, NodeMapping, RelationMapping
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
PAID = '[[graph.relationships]]\ntype = "PAID"\n'


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
    assert mapping.nodes[0] == mapping.classified == flight
    assert mapping.nodes[1].column_names == ("name", "altitude")
    assert mapping.relations == (RelationMapping(0, "DEPARTS", 1),)
    assert (mapping.classified_relations, mapping.inner_relations) == ((), [])
    assert (mapping.class_property, mapping.features_are_strict) == ("status", False)


def test_one_label_is_the_same_schema_with_strict_numbers(load_text):
    mapping = load_text(ONE_LABEL + PAID).mapping()
    account = NodeMapping("A", "id", (ColumnMapping("x", "vector"),), "created_at")
    paid = RelationMapping(0, "PAID", 0, created_at="created_at")
    assert mapping == GraphMapping((account,), (paid,), "kind", "zoned", features_are_strict=True)
    assert (mapping.features_are_list, mapping.inner_relations) == (True, [0])
    numbers = load_text(ONE_LABEL.replace('"x"', '["b", "a"]')).mapping()
    assert numbers.classified.columns == (
        ColumnMapping("b", "number"),
        ColumnMapping("a", "number"),
    )
    assert (numbers.features_are_strict, numbers.features_are_list) == (True, False)


def test_a_vector_column_beside_labels_is_not_strict(load_text):
    mapping = load_text(TYPED + 'gps = "vector"\n').mapping()
    assert ColumnMapping("gps", "vector") in mapping.classified.columns
    assert (mapping.features_are_strict, mapping.features_are_list) == (False, False)


def test_a_creation_time_is_the_watermark_and_without_one_new_nodes_are_unknown_keys(load_text):
    assert load_text(TYPED).mapping().arrival == "keys"
    timed = TYPED.replace('role = "classified"', 'role = "classified"\ncreated_at = "written"')
    mapping = load_text(timed).mapping()
    assert (mapping.arrival, mapping.classified.created_at) == ("created_at", "written")


def test_relationships_have_no_creation_time_beside_labels_unless_it_is_named(load_text):
    assert load_text(TYPED).mapping().relations[0].created_at is None
    named = load_text(TYPED.replace('to = "Airport"', 'to = "Airport"\ncreated_at = "t"'))
    assert named.mapping().relations[0].created_at == "t"
    one_label = load_text(ONE_LABEL + PAID)
    assert one_label.mapping().relations[0].created_at == "created_at"


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
        (ONE_LABEL + RELATION, r"relationship X has from, to, after_evaluation or columns"),
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


SENT = TYPED.replace('to = "Airport"\n', 'to = "Airport"\n{}\n')


def test_properties_of_relationships_are_columns_by_name_or_with_kind_and_options(load_text):
    table = '{property = "sum", kind = "number", options = {log = true}}'
    mapping = load_text(SENT.replace("{}", f'columns = ["at", {table}]')).mapping()
    columns = (ColumnMapping("at"), ColumnMapping("sum", "number", {"log": True}))
    assert mapping.relations == (RelationMapping(0, "DEPARTS", 1, columns=columns),)
    assert mapping.relation_columns == {0: ("at", "sum")}
    assert load_text(TYPED).mapping().relation_columns == {}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('columns = ["at", "at"]', "column at is named twice"),
        ('columns = [""]', "a name is empty"),
        ('columns = ["at"]\nafter_evaluation = true', "take one of the two out"),
        ("columns = [{kind = 'number'}]", "property is missing"),
        ("columns = [7]", "columns"),
    ],
)
def test_columns_of_relationships_that_contradict_are_named(load_text, lines, words):
    with pytest.raises(ConfigError) as refused:
        load_text(SENT.replace("{}", lines))
    assert words in str(refused.value)


def test_columns_of_relationships_need_tables_of_labels(load_text):
    with pytest.raises(ConfigError, match="or columns, which need"):
        load_text(ONE_LABEL + PAID + 'columns = ["sum"]\n')
