"""The list of versions and a model's card, from a made-up store."""

import json
from html.parser import HTMLParser

import pytest

from ringfence.connector.errors import ModelError
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.card_page import FORMATS, as_html, as_markdown
from ringfence.jobs.lifecycle.comparison import BASELINES, DESCRIPTIONS
from ringfence.jobs.lifecycle.versions import choose_version, read_versions
from tests.jobs.integrity.sample_record import project


@pytest.fixture(scope="module")
def store(request, tmp_path_factory):
    with project(request, tmp_path_factory.mktemp("versions"), "sqlite") as (store, _):
        yield store


def test_versions_are_listed_with_state_runs_and_coverage(store):
    found = read_versions(store, "p")
    assert [(one.version, one.state) for one in found.versions] == [
        ("sample-1", "active"),
        ("sample-2", "retired"),
    ]
    first, second = found.versions
    assert (first.runs, first.evaluated, first.calibration) == (3, 120, 60)
    assert 0.2 < first.coverage < 0.6  # the sample's sets hold the class with chance 0.4
    assert first.verdict == "broken"
    assert (second.runs, second.coverage, second.reason) == (0, None, "it is better")
    assert first.reason == "it is not"
    assert found.active == "sample-1"
    assert json.loads(json.dumps(found.as_json()))["activations"][1]["how"] == "promoted"
    assert second.on_holdout == "accuracy 1.000, beats 3 of 3"
    assert [one.split(" than ")[1].split(" in ")[0] for one in found.warnings] == [
        DESCRIPTIONS[name] for name in BASELINES
    ]
    assert all(one.startswith("the model in use sample-1 is no better") for one in found.warnings)


def test_a_card_has_everything_in_three_formats(store):
    card = read_card(store, "p", "sample-1")
    titles = [section.title for section in card.sections]
    assert titles == ["Model", "Data", "How good it is", "What the relationships bring", "Promise",
                      "In use", "Since then", "Known limits"]  # fmt: skip
    html, markdown, body = (FORMATS[name](card) for name in ("html", "markdown", "json"))
    for part in ("ab" * 32, "it is not", "verdict broken", "NodeEx"):
        assert part in html
        assert part in markdown
    assert json.loads(body)["manifest"]["classes"] == ["retail", "business", "mule", "exchange"]
    HTMLParser().feed(html)
    assert "http" not in html


def test_what_a_person_wrote_stays_text_on_the_page(store):
    card = read_card(store, "p", "sample-2")
    bad = type(card)("<script>x</script>", "p|q", "active", card.sections, {})
    assert "<script>" not in as_html(bad)
    assert "p\\|q" in as_markdown(bad)


def test_a_version_is_found_by_its_beginning_alone_if_that_is_enough():
    assert choose_version(["sample-1", "sample-12"], "sample-1") == "sample-1"
    for text, words in (("sample", "2 model"), ("x", "0 model"), ("", "0 model")):
        with pytest.raises(ModelError, match=words):
            choose_version(["sample-1", "sample-12"], text)
