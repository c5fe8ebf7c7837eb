"""After how many days classes are known, from a property that tells when they were set."""

import datetime as dt
from collections import Counter
from types import SimpleNamespace

from ringfence.connector.neo4j.sample import SampledProperty
from ringfence.jobs.setup.proposal.arrival import Arrival
from ringfence.jobs.setup.proposal.choice import Choice
from ringfence.jobs.setup.proposal.label_delay import NOT_TOLD, propose_label_delay

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
CREATED = [START + dt.timedelta(hours=i) for i in range(100)]
CLASSES = ["mule" if i % 4 else None for i in range(100)]
ARRIVAL = Arrival("created_at", "zoned", Choice("created_at", ""), ())


def sample(**properties):
    made = {
        name: SampledProperty(name, values, Counter({type_: sum(v is not None for v in values)}))
        for name, (type_, values) in properties.items()
    }
    return SimpleNamespace(properties=made)


def labelled(given=CLASSES):
    """Times of the classes: most after fourteen days, one in fifty after a hundred."""
    late = [dt.timedelta(days=100 if i % 50 == 1 else 14) for i in range(100)]
    times = [time + delay for time, delay in zip(CREATED, late, strict=True)]
    return [time if class_ else None for time, class_ in zip(times, given, strict=True)]


def propose(**more):
    properties = {"created_at": ("ZONED DATETIME", CREATED), "kind": ("STRING", CLASSES)}
    return propose_label_delay(sample(**properties, **more), "kind", ARRIVAL)


def test_the_delay_is_that_of_nearly_all_classes():
    choice = propose(labelled_at=("ZONED DATETIME", labelled()))
    assert (choice.value, choice.sure) == (14, True)
    assert "within 14 days of created_at, by labelled_at" in choice.why


def test_a_time_that_nodes_without_a_class_have_too_tells_nothing():
    everybody = labelled(given=["any"] * 100)
    assert propose(reviewed_at=("ZONED DATETIME", everybody)) == NOT_TOLD


def test_a_time_of_another_name_tells_nothing():
    assert propose(last_login=("ZONED DATETIME", labelled())) == NOT_TOLD


def test_without_any_time_nothing_is_told():
    nothing = Arrival(None, "zoned", Choice("", ""), ())
    told = propose_label_delay(sample(kind=("STRING", CLASSES)), "kind", nothing)
    assert told == NOT_TOLD
    assert not told.sure
