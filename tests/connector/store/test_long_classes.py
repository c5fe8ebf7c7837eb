"""The longest class of the node with the longest key stands in the indexes of both stores."""

import random

import pytest

from ringfence.connector.errors import StoreError
from ringfence.connector.keys import MAX_KEY_CHARS
from ringfence.connector.neo4j.read.columns import MAX_CLASS_BYTES
from ringfence.connector.records import Label
from ringfence.connector.store.labels import record_labels
from tests.connector.store.calibration.test_calibration_digest import decide
from tests.stores import postgresql

CHANCE = random.Random(5)
FOUR_BYTES = range(0x1F300, 0x1FFFF)


def long_text(size):
    """Letters of four bytes that nothing compresses."""
    return "".join(map(chr, CHANCE.choices(FOUR_BYTES, k=size)))


def notice(writer, class_):
    key = "s:" + long_text(MAX_KEY_CHARS - 2)
    decide(writer, [key])
    record_labels(writer, [Label(key, class_, True, True, True, None)])


def test_the_longest_class_is_recorded(writer):
    notice(writer, long_text(MAX_CLASS_BYTES // 4))


@postgresql
def test_a_longer_one_would_end_every_audit(writer):
    with pytest.raises(StoreError, match="index row size"):
        notice(writer, long_text(MAX_CLASS_BYTES // 2))
