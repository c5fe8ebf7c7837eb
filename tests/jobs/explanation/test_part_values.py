"""Values beside the parts of an answer, against the graph that the run read."""

import datetime as dt

import numpy as np
import pytest

from ringfence.connector.keys import decode_key
from ringfence.connector.store import predictions
from ringfence.jobs.explanation.part_values import describe_among
from ringfence.jobs.python_api.answer import why_answer
from ringfence.jobs.views.explain import run_explain
from tests.stores import sqlite

WHOM = "4 known retail nodes"
DAY = dt.date(2025, 3, 1)


@pytest.mark.parametrize(
    ("value", "others", "words"),
    [
        (2.5, [1.0, 3.0, 4.0, 5.0], f"2.5, lower than 75 % of {WHOM}"),
        (4.5, [1.0, 3.0, 4.0, 5.0], f"4.5, higher than 75 % of {WHOM}"),
        (2.5, [1.0, None, "x", 5.0], f"2.5, lower than 25 % of {WHOM}"),
        (2, [2, 2, 2, 2], f"2, lower than 0 % of {WHOM}"),
        (True, [True, False, False, None], f"yes, as 25 % of {WHOM}"),
        (1, [True, True, True, True], "1"),
        ("web", ["web", "app", None, "web"], f"web, as 50 % of {WHOM}"),
        (None, [None, 1.0, 2.0, 3.0], f"missing, as 25 % of {WHOM}"),
        (DAY, [DAY, DAY.replace(day=2), None, DAY], f"2025-03-01, earlier than 25 % of {WHOM}"),
        (dt.datetime(2025, 3, 1, tzinfo=dt.UTC), [dt.datetime(2025, 3, 1)] * 4,
         "2025-03-01 00:00:00+00:00"),
        (2.5, [], "2.5"),
    ],
)  # fmt: skip
def test_a_value_stands_among_those_of_other_nodes(value, others, words):
    assert describe_among(value, others, WHOM) == words


@sqlite
def test_values_are_those_of_the_graph_and_stand_in_sentence_json_and_frame(scored):
    workspace = scored.workspace
    key = min(predictions.evaluated_keys(workspace.store, workspace.project))
    told = run_explain(workspace, key, why=True)
    why = told.reasons
    mapping = workspace.mapping
    feature, kind = mapping.classified.column_names[0], mapping.class_property
    rows = workspace.graph.read(
        f"MATCH (n:Account) RETURN n.id AS id, n.{feature} AS values, n.{kind} AS kind"
    )
    own = next(row["values"] for row in rows if row["id"] == decode_key(key))
    classes = [row["kind"] for row in rows if row["kind"] is not None]
    others = [name for name in dict.fromkeys(classes) if name != why.classes[why.likeliest]]
    largest = max(others, key=classes.count)
    known = np.array([row["values"] for row in rows if row["kind"] == largest], np.float32)
    of_column = {reason.part.name: reason for reason in why.reasons if reason.part.kind == "column"}
    for place, value in enumerate(np.array(own, np.float32)[:5]):
        below, above = (known[:, place] < value).sum(), (known[:, place] > value).sum()
        way, share = ("lower", above) if above >= below else ("higher", below)
        assert of_column[f"{feature}[{place}]"].value == (
            f"{value:.6g}, {way} than {100 * share / len(known):.0f} % of "
            f"{len(known):,} known {largest} nodes"
        )
    assert all(reason.value for reason in of_column.values())
    strongest = max(of_column.values(), key=lambda reason: abs(reason.evidence[why.likeliest]))
    if strongest.part.describe() in why.sentence:
        assert strongest.value in why.sentence
    assert told.as_json()["why"]["reasons"][0]["value"] == (why.reasons[0].value or None)
    answer = why_answer(told)
    assert set(answer.frame["value"]) >= {reason.value for reason in of_column.values()}
    assert why.sentence in answer.words
