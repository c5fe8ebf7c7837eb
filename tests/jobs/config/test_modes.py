"""A mode of [conformal] is a name for lines that the file could have, and these win."""

import typing

import pytest
from pydantic import ValidationError

from ringfence.jobs.config.conformal import MODES, ConformalSettings, Mode
from ringfence.jobs.config.load import load_values
from ringfence.jobs.project.promise import terms_for_training


def facts(**given):
    """All settings but the mode's name, and which of them count as given."""
    settings = ConformalSettings(**given)
    return settings.model_dump(exclude={"mode"}), settings.model_fields_set - {"mode"}


def test_every_mode_has_its_settings():
    assert set(typing.get_args(Mode)) == set(MODES)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rule", ["auto", "NodeEx", "EdgeEx"])
def test_a_mode_is_as_if_its_settings_were_written(mode, rule):
    assert facts(mode=mode, rule=rule) == facts(rule=rule, **MODES[mode])


@pytest.mark.parametrize("mode", MODES)
def test_what_is_set_beside_a_mode_wins(mode):
    kept = {"promise": "marginal", "calibration_set": "growing", "adapt": False}
    for name, value in kept.items():
        assert getattr(ConformalSettings(mode=mode, **{name: value}), name) == value
    assert facts(mode=mode, **kept) == facts(**kept)


def test_living_is_what_holds_without_a_mode():
    living, without = ConformalSettings(mode="living"), ConformalSettings()
    assert living.model_dump(exclude={"mode"}) == without.model_dump(exclude={"mode"})
    assert ConformalSettings(mode="paper").calibration_set == "frozen"  # the control


@pytest.mark.parametrize(
    ("lines", "rule", "score"),
    [
        ({"mode": "paper"}, "auto", "DAPS"),
        ({"mode": "paper", "rule": "NodeEx"}, "NodeEx", "APS"),
        ({"mode": "paper", "rule": "EdgeEx"}, "EdgeEx", "APS"),
        ({"mode": "paper", "rule": "NodeEx", "score": "RAPS"}, "NodeEx", "RAPS"),
    ],
)
def test_the_papers_own_sets_need_its_rule_beside_its_mode(lines, rule, score):
    """As docs/settings.md has it."""
    terms = terms_for_training(ConformalSettings(**lines))
    assert (terms.rule, terms.score) == (rule, score)
    assert (terms.promise, terms.calibration_set, terms.adapt) == ("marginal", "frozen", False)


def test_a_promise_to_groups_goes_with_a_mode_and_needs_its_own_line():
    grouped = ConformalSettings(mode="living", promise="group", group="region")
    assert (grouped.promise, grouped.calibration_set) == ("group", "window")
    with pytest.raises(ValidationError, match="belong together"):
        ConformalSettings(mode="living", group="region")


@pytest.mark.parametrize("mode", ["Paper", "", "per-class", ["paper"], {"a": 1}, 3])
def test_another_name_is_refused_with_those_that_there_are(mode):
    with pytest.raises(ValidationError, match="'paper', 'living' or 'per class'"):
        ConformalSettings(mode=mode)


def test_a_modes_name_and_the_time_of_reading_are_no_part_of_what_a_run_records(tmp_path):
    graph = {"label": "A", "key": "id", "features": "x", "class_property": "kind"}

    def digest(**sections):
        return load_values({"graph": dict(graph), **sections}, tmp_path / "r.toml", {}).digest()

    assert digest() == digest(conformal={"mode": "living"})
    assert digest() == digest(engine={"unseen_transaction_seconds": 5.0})
    assert digest() != digest(conformal={"mode": "paper"})  # the control
