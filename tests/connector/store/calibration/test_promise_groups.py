"""Who calibrates a class or a group that calibrates for itself, from the record of both stores."""

from dataclasses import replace

from ringfence.connector.records import JoinedNode, Member, NodeGroup, Prediction, Threshold
from ringfence.connector.store import models, runs
from ringfence.connector.store.calibration.promise_groups import class_schedules, group_schedules
from ringfence.connector.store.groups import record_groups
from ringfence.connector.store.runs import Decision
from tests.connector.store.test_rows import FACTS, SETS


def test_who_calibrates_a_class_is_counted_once_where_bands_share_its_nodes(writer):
    models.record_model(writer, "m", "{}", "digest", [Member("i:1", "calibration", 0)])
    sizes = {"a": {"0-4": 40, "5-9": 60, "10+": 30}, "b": {"0-4": 9, "5-9": 9, "10+": 9}}
    thresholds = [
        Threshold(alpha, band, name, alpha, -0.9, n, float(n), 1)
        for alpha in (0.1, 0.2)
        for name, bands in sizes.items()
        for band, n in bands.items()
    ]
    seq = runs.decide(writer, Decision(FACTS, SETS, [], thresholds=thresholds))
    found = class_schedules(writer.store, "p", "m", ("a", "b", "c"))
    assert {name: [one.n_calibration for one in found[name]] for name in found} == {
        "a": [130], "b": [9], "c": [0],
    }  # fmt: skip
    assert [(one.seq, one.is_own) for name in "abc" for one in found[name]] == [
        (seq, True), (seq, True), (seq, False),
    ]  # fmt: skip


def of_band(key, band):
    return Prediction(f"s:{key}", ("a",), (0.25, 0.5), (-0.5, 0.0), degree=1, band=band)


def of_bands(sizes):
    return [
        Threshold(alpha, band, "", alpha, -0.9, n, float(n), 1)
        for alpha in (0.1, 0.2)
        for band, n in sizes.items()
    ]


def test_who_calibrates_a_group_is_counted_from_its_own_bands_and_joined_nodes(writer):
    """North has two bands, south one; nodes without a region are a group of their own."""
    models.record_model(writer, "m", "{}", "digest", [Member("i:1", "calibration", 0)])
    facts = replace(FACTS, calibration_set="window", n_evaluated=4)
    named = {"n1": "0-1 in region=north", "n2": "2+ in region=north", "so": "region=south",
             "no": "no region"}  # fmt: skip
    first = {"0-1 in region=north": 30, "2+ in region=north": 40, "region=south": 20,
             "no region": 10}  # fmt: skip
    sets = [of_band(key, band) for key, band in named.items()]
    one = runs.decide(writer, Decision(facts, sets, [], thresholds=of_bands(first)))
    groups = [NodeGroup(f"s:{key}", "region", value)
              for key, value in (("n1", "north"), ("n2", "north"), ("so", "south"))]  # fmt: skip
    record_groups(writer, [f"s:{key}" for key in named], groups)
    joined = [JoinedNode(f"s:{key}", one, "a") for key in named]
    two = runs.decide(
        writer,
        Decision(
            facts, [of_band("later", "region=north")], [], joined=joined,
            thresholds=of_bands({"region=north": 72}),
        ),
    )  # fmt: skip
    found = group_schedules(writer.store, "p", "m", "region")
    assert {name: [(run.seq, run.n_calibration, run.is_own, run.joined) for run in found[name]]
            for name in found} == {
        "region=north": [(one, 70, True, {}), (two, 72, True, {one: 2})],
        "region=south": [(one, 20, True, {}), (two, 0, False, {one: 1})],
        "no region": [(one, 10, True, {}), (two, 0, False, {one: 1})],
    }  # fmt: skip
