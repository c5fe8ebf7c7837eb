"""When nodes were first seen: written once, whoever asks later."""

from ringfence.connector.store.first_seen import find_first_seen, record_first_seen


def test_a_node_keeps_the_time_at_which_it_was_first_seen(writer):
    record_first_seen(writer, {"i:1": 10, "s:b": 10})
    record_first_seen(writer, {"i:1": 99, "i:2": 20})
    project = writer.lease.project
    assert find_first_seen(writer.store, project, ["i:1", "i:2", "s:b", "s:absent"]) == {
        "i:1": 10,
        "i:2": 20,
        "s:b": 10,
    }
    assert find_first_seen(writer.store, "another", ["i:1"]) == {}


def test_more_nodes_than_one_statement_takes(writer):
    times = {f"i:{number}": number % 3 for number in range(12_000)}
    record_first_seen(writer, times)
    assert find_first_seen(writer.store, writer.lease.project, list(times)) == times
