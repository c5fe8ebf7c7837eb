"""`ringfence advise --list`: what a list needs stands beside what it finds."""

import pytest

from ringfence.connector.list_terms import ListTerms
from ringfence.jobs.cli.commands.model.advise import print_list_trade_off
from ringfence.jobs.scoring.list_trade_off import ListAtShare, ListTradeOff


@pytest.mark.parametrize(
    ("per", "said"),
    [
        ("run", "have to be not mule before a list of all right nodes can hold; of 100 calibration "
                "nodes 94 are"),
        ("stream", "have to be mule before it can hold anybody; of 100 calibration nodes 6 are"),
    ],
)  # fmt: skip
def test_the_calibration_nodes_that_a_list_needs_are_told(per, said, capsys):
    row = ListAtShare(0.2, 9, 0.09, 0.8, 0.1, 78)
    terms = ListTerms("look", "mule", False, 0.2, per)
    print_list_trade_off(ListTradeOff(terms, "v", 100, 6, "words", (row,), 100, 94))
    printed = " ".join(capsys.readouterr().out.split())
    assert "78" in printed
    assert said in printed
