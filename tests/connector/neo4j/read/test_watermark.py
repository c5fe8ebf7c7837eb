"""Many writers commit late; a reader capped at the oldest open transaction misses none."""

import os
import random
import threading
import time
from datetime import datetime

import pytest
from neo4j import GraphDatabase

from ringfence.connector import mirror as mirrors
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read.sync import GraphReader, sync_mirror
from ringfence.connector.neo4j.read.watermark import horizon

WRITERS = 20
OVERLAP = 0.25  # seconds: a server under load stamps a transaction well before it lists it as open
NODES = int(os.environ.get("RINGFENCE_TEST_WRITERS_NODES", "1500"))
MAPPING = GraphMapping(
    label="Late",
    key="id",
    features=("features",),
    features_are_list=True,
    class_property="kind",
    created_at="created_at",
    time_kind="zoned",
    relationships=(),
)
CREATE = (
    "UNWIND $ids AS id CREATE (:Late {id: id, features: [1.0, 2.0], created_at: datetime.%s()})"
)
PLAIN = """
MATCH (n:Late) WHERE $mark IS NULL OR n.created_at > $mark
RETURN n.id AS id, n.created_at AS at
"""


def write(graph, first, stop, written):
    """Keep writing: stamp now, commit up to a second later."""
    chance = random.Random(first)
    number = first
    with GraphDatabase.driver(graph.uri, auth=graph.auth) as driver:
        while not stop.is_set():
            ids = list(range(number, number + chance.randint(1, 5) * 5))
            clock = chance.choice(("realtime", "transaction", "statement"))
            with driver.session() as session, session.begin_transaction() as transaction:
                transaction.run(CREATE % clock, ids=ids).consume()
                time.sleep(min(1.0, chance.expovariate(6)))
                transaction.commit()
            written.extend(ids)
            number = ids[-1] + 1


def test_twenty_late_writers_lose_nothing_and_a_plain_reader_does(graph, tmp_path):
    graph.run("CREATE CONSTRAINT FOR (n:Late) REQUIRE n.id IS UNIQUE")
    graph.run("CREATE INDEX FOR (n:Late) ON (n.created_at)")
    graph.run(CREATE % "realtime", ids=[0])
    ours = connect(graph.uri, *graph.auth)
    reader = GraphReader(ours, MAPPING, tmp_path, 1_000, OVERLAP)
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
        ending = sum(len(one) for one in written) >= NODES
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
    everything = {number for one in written for number in one}
    seen = {int(key.removeprefix("i:")) for key in read.mirror.keys}
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
    for _try in range(300):
        time.sleep(0.098 - time.time() % 0.1 if time.time() % 0.1 < 0.098 else 0)
        with (
            graph.driver.session() as session,
            session.begin_transaction(metadata={"held": True}) as held,
        ):
            held.run("RETURN 1").consume()
            start = graph.run(HELD)[0]["startTime"]
            start_ms = round(datetime.fromisoformat(start).timestamp() * 1000)
            if start_ms % 100:
                continue
            found = horizon(connected)
            if start > min(graph.run(STARTS)[0]["starts"]):  # a later one comes first as text
                assert found.watermark_ns == start_ms * 1_000_000
                return
    pytest.fail("no transaction began in a millisecond that is written with fewer digits")
