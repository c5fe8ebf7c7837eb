"""What a shadow part that failed leaves in the log and on record: no value of the graph."""

import pytest

from ringfence.jobs.scoring import shadow

PLANTED = "DE44 5001 0517 5407 3249 31"


def fail(*_arguments):
    """A defect whose message and cause hold a value, as those of libraries do."""
    try:
        float(PLANTED)
    except ValueError as error:
        raise KeyError({"id": PLANTED}) from error


def test_no_value_of_the_graph_reaches_the_log_or_the_record(caplog, monkeypatch):
    with pytest.raises(KeyError) as raised:
        fail()
    kept = []
    monkeypatch.setattr(shadow, "record_shadow", lambda _writer, row, _sets: kept.append(row))
    with caplog.at_level("DEBUG"):
        done = shadow._failed(None, "v2", 7, raised.value)
        monkeypatch.setattr(shadow, "record_shadow", fail)  # nor can it be written down
        shadow._failed(None, "v2", 7, raised.value)
    assert done.failed == kept[0].failed == "KeyError; please report it"
    assert "were not made: KeyError" in caplog.text
    assert "nor could that be written down: KeyError" in caplog.text
    assert PLANTED not in caplog.text
    assert not any(record.exc_info for record in caplog.records)
