"""Many writers commit late; a reader capped at the oldest open transaction misses none."""

import os
import random
import threading
import time
from datetime import datetime

import pytest
from neo4j import GraphDatabase

from ringfence.connector import mirror as mirrors
from ringfence.connector.mapping import map_one_label
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror
from ringfence.connector.neo4j.read.watermark import horizon
from tests.connector.neo4j.read.forms import FORMS, add_context, in_form, node_keys
from tests.patience import wait_until

WRITERS = 20
OVERLAP = 1.0  # seconds: a server under load stamps a transaction well before it lists it as open
MAX_LATE_SECONDS, LATE_PER_SECOND = 4.0, 1.5  # a fifth of the commits comes later than the overlap
NODES = int(os.environ.get("RINGFENCE_TEST_WRITERS_NODES", "1500"))
MAPPING = map_one_label(
    label="Late",
    key="id",
    features="features",
    class_property="kind",
    created_at="created_at",
    time_kind="zoned",
    relations=(),
)
CREATE = (
    "UNWIND $ids AS id CREATE (:Late {id: id, features: [1.0, 2.0], created_at: datetime.%s()})"
)
PLAIN = """
MATCH (n:Late) WHERE $mark IS NULL OR n.created_at > $mark
RETURN n.id AS id, n.created_at AS at
"""


def write(graph, first, stop, written):
    """Keep writing: stamp now, commit up to four seconds later."""
    chance = random.Random(first)
    number = first
    with GraphDatabase.driver(graph.uri, auth=graph.auth) as driver:
        while not stop.is_set():
            ids = list(range(number, number + chance.randint(1, 5) * 5))
            clock = chance.choice(("realtime", "transaction", "statement"))
            with driver.session() as session, session.begin_transaction() as transaction:
                transaction.run(CREATE % clock, ids=ids).consume()
                time.sleep(min(MAX_LATE_SECONDS, chance.expovariate(LATE_PER_SECOND)))
                transaction.commit()
            written.extend(ids)
            number = ids[-1] + 1


@pytest.mark.parametrize("form", FORMS)
def test_twenty_late_writers_lose_nothing_and_a_plain_reader_does(graph, tmp_path, form):
    graph.run("CREATE CONSTRAINT FOR (n:Late) REQUIRE n.id IS UNIQUE")
    graph.run("CREATE INDEX FOR (n:Late) ON (n.created_at)")
    graph.run(CREATE % "realtime", ids=[0])
    ours = connect(graph.uri, *graph.auth)
    add_context(form, graph, "Late")
    reader = GraphReader(ours, in_form(form, MAPPING), tmp_path, 1_000, OVERLAP)
    mirrors.save(sync_mirror(reader).mirror, tmp_path)

    stop, written = threading.Event(), [[0]]
    threads = []
    for number in range(WRITERS):
        written.append([])
        arguments = (graph, 1 + number * 10_000_000, stop, written[-1])
        threads.append(threading.Thread(target=write, args=arguments))
        threads[-1].start()
    plain, mark, reasons = set(), None, []
    ending = False
    while True:
        ending = sum(map(len, written)) >= NODES
        if ending:
            stop.set()
            for thread in threads:
                thread.join()
        for row in graph.run(PLAIN, mark=mark):  # the negative control: newer than the newest seen
            plain.add(row["id"])
            mark = row["at"] if mark is None else max(mark, row["at"])
        read = sync_mirror(reader)
        mirrors.save(read.mirror, tmp_path)
        reasons.append(read.rebuilt)
        if ending:
            break
    everything = {number for numbers in written for number in numbers}
    seen = {int(key.removeprefix("i:")) for key in node_keys(read.mirror)}
    ours.close()
    print(f"{len(everything)} nodes, {len(reasons)} reads: missed {len(everything - seen)}; "
          f"a plain reader missed {len(everything - plain)}")  # fmt: skip
    assert len(everything) >= NODES
    assert seen == everything
    assert set(reasons) == {""}  # the watermark sufficed: no read had to begin again
    assert everything - plain


HELD = "SHOW TRANSACTIONS YIELD startTime, metaData WHERE metaData.held RETURN startTime"
STARTS = "SHOW TRANSACTIONS YIELD startTime RETURN collect(startTime) AS starts"


def test_a_start_that_is_written_with_fewer_digits_holds_the_watermark_back(graph, connected):
    """The server leaves out trailing zeros: as text, "…:05.1Z" sorts behind "…:05.117Z"."""

    def is_seen():
        time.sleep(0.098 - time.time() % 0.1 if time.time() % 0.1 < 0.098 else 0)
        with (
            graph.driver.session() as session,
            session.begin_transaction(metadata={"held": True}) as held,
        ):
            held.run("RETURN 1").consume()
            start = graph.run(HELD)[0]["startTime"]
            start_ms = round(datetime.fromisoformat(start).timestamp() * 1000)
            if start_ms % 100:
                return False
            watermark_ns = horizon(connected).watermark_ns
            if start <= min(graph.run(STARTS)[0]["starts"]):
                return False
            assert watermark_ns == start_ms * 1_000_000  # a later one comes first as text
            return True

    wait_until(is_seen, "a start in a millisecond that is written with fewer digits")
