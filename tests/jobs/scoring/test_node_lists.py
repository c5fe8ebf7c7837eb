"""What a run's notes say of its lists: too few references, and nodes on lists of both kinds."""

import numpy as np
import pytest

from ringfence.connector.list_terms import THEOREM, ListFacts, ListTerms
from ringfence.jobs.scoring.node_lists import NodeList, describe_overlap, describe_shortage
from ringfence.models.selection.per_run import PER_RUN
from ringfence.models.selection.per_stream import PER_STREAM


def made(name, is_clear, shares, may_be_wrong=0.2):
    terms = ListTerms(name, "mule", is_clear, may_be_wrong, "run")
    facts = ListFacts(terms, 100, 50, 0.5, 1, 0, THEOREM, "")
    return NodeList(facts, np.array(shares))


def test_three_calibration_nodes_of_a_class_are_too_few_to_clear_at_one_per_cent():
    needed = PER_RUN.references_needed(0.06, 0.01)
    terms = ListTerms("clear", "mule", True, 0.01, "run")
    said = describe_shortage(terms, 3, needed)
    assert said.startswith(f". 3 calibration nodes are mule, and {needed} are needed")
    assert needed == 6
    assert describe_shortage(terms, needed, needed) == ""


def test_what_a_stream_is_short_of_are_right_nodes():
    needed = PER_STREAM.references_needed(0.06, 0.01)
    said = describe_shortage(ListTerms("clear", "mule", True, 0.01, "stream"), 94, needed)
    assert said == (
        f". 94 calibration nodes are not mule, and {needed} are needed before it can hold anybody"
    )


def test_nodes_on_lists_of_both_kinds_are_said_and_stay_on_both():
    look, clear = made("look", False, [0.1, 0.1, 0.9]), made("clear", True, [0.9, 0.2, 0.1])
    (note,) = describe_overlap([look, clear])
    assert note.startswith("1 node is on a list to investigate and on one to clear")
    assert look.is_listed[1]
    assert clear.is_listed[1]


@pytest.mark.parametrize("clear", [[0.9, 0.9, 0.1], None])
def test_without_an_overlap_nothing_is_said(clear):
    lists = [made("look", False, [0.1, 0.1, 0.9]), made("again", False, [0.1, 0.1, 0.1])]
    assert (
        describe_overlap(lists[:1] + ([made("clear", True, clear)] if clear else lists[1:])) == []
    )
