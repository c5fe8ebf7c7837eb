"""Blocks that are fetched in threads: their order, their errors, and who closes what."""

import gc
import threading
import time

import pytest

from ringfence.connector.neo4j.prefetch import prefetch
from tests.patience import PATIENCE_SECONDS


class Stream:
    """Numbers, one at a time; notes which threads touched it, and how far it has come."""

    def __init__(self, first, count, fails_at=None):
        self.threads, self.given, self.closed_by = set(), 0, None
        self.blocks = self._numbers(first, count, fails_at)

    def _numbers(self, first, count, fails_at):
        try:
            for number in range(first, first + count):
                self.threads.add(threading.get_ident())
                if number == fails_at:
                    raise OSError(f"no {number}")
                self.given += 1
                yield number
        finally:
            self.closed_by = threading.get_ident()


def taken(*streams):
    """What comes before the end or an error, and the error."""
    seen = []
    try:
        seen.extend(prefetch(*(stream.blocks for stream in streams)))
    except OSError as error:
        return seen, str(error)
    return seen, None


def test_streams_take_turns_and_the_longer_one_goes_on_alone():
    assert taken(Stream(0, 2), Stream(10, 4)) == ([0, 10, 1, 11, 12, 13], None)
    assert taken(Stream(0, 3), Stream(10, 0)) == ([0, 1, 2], None)
    assert taken() == ([], None)


@pytest.mark.parametrize(
    ("fails_at", "before"), [(0, []), (2, [0, 10, 1, 11]), (10, [0]), (12, [0, 10, 1, 11, 2])]
)
def test_an_error_of_either_stream_comes_in_its_place_and_both_are_closed(fails_at, before):
    streams = Stream(0, 5, fails_at), Stream(10, 5, fails_at)
    assert taken(*streams) == (before, f"no {fails_at}")
    assert all(stream.closed_by for stream in streams)


def test_without_an_error_everything_comes():
    """The negative control of the test before."""
    assert taken(Stream(0, 5, 99), Stream(10, 5, 99))[0] == [0, 10, 1, 11, 2, 12, 3, 13, 4, 14]


def test_each_stream_has_one_thread_that_fetches_and_closes_it():
    streams = Stream(0, 9), Stream(10, 9)
    blocks = prefetch(*(stream.blocks for stream in streams))
    assert [next(blocks), next(blocks)] == [0, 10]
    blocks.close()
    (first,), (second,) = (stream.threads for stream in streams)
    assert len({first, second, threading.get_ident()}) == 3
    assert [stream.closed_by for stream in streams] == [first, second]


def test_no_stream_is_more_than_a_block_ahead():
    streams = Stream(0, 50), Stream(100, 50)
    for used, _ in enumerate(prefetch(*(stream.blocks for stream in streams)), start=1):
        time.sleep(0.001)
        assert sum(stream.given for stream in streams) <= used + len(streams)


def meeting(barrier):
    barrier.wait(timeout=PATIENCE_SECONDS)
    yield "met"


def test_all_streams_work_at_once():
    barrier = threading.Barrier(2)
    assert list(prefetch(meeting(barrier), meeting(barrier))) == ["met", "met"]


def test_one_after_the_other_they_would_not_meet():
    """The negative control of the test before."""
    barrier = threading.Barrier(2)
    barrier.wait = lambda timeout: threading.Barrier.wait(barrier, 0.1)
    with pytest.raises(threading.BrokenBarrierError):
        list(prefetch(meeting(barrier)))


def test_a_stream_that_is_collected_with_an_error_is_closed():
    """An error keeps the frames that it came through: nothing else refers to the stream then."""
    closed = []

    def blocks():
        try:
            yield from range(5)
        finally:
            closed.append(True)

    def give_up():
        stream = prefetch(blocks())
        assert next(stream) == 0
        cycle = {"stream": stream}
        cycle["itself"] = cycle

    def collect():
        gc.disable()
        give_up()
        gc.enable()
        assert not closed
        gc.collect()

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert closed == [True]
