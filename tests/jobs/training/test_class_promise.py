"""What a promise per class asks of training, and what is said before it begins."""

import numpy as np
import pytest

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.load import load_values
from ringfence.jobs.training.class_promise import plan_promise
from ringfence.jobs.training.split import _role_masks

LABELLED = {"mule": 60, "normal": 3000, "shop": 5}


def settings(tmp_path, conformal=None, model=None):
    values = {
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "conformal": conformal or {},
        "model": model or {},
    }
    return load_values(values, tmp_path / "ringfence.toml", {})


def test_rare_classes_give_more_to_calibration_and_too_small_ones_are_named(tmp_path):
    plan = plan_promise(settings(tmp_path, {"promise": "class"}), LABELLED)
    assert plan.class_weights
    assert set(plan.calibration_shares) == {"mule", "shop"}
    assert plan.calibration_shares["mule"] == 0.6
    first, larger = plan.sentences
    assert first.startswith("class shop will be in every set: 5 labelled nodes")
    assert "10 more labelled nodes would do" in first
    assert "mule 60%" in larger


def test_nothing_changes_without_a_promise_per_class(tmp_path):
    plan = plan_promise(settings(tmp_path), LABELLED)
    assert (dict(plan.calibration_shares), plan.class_weights, plan.sentences) == ({}, False, ())


@pytest.mark.parametrize(("given", "weighed"), [("auto", True), (False, False), (True, True)])
def test_class_weights_can_be_chosen(tmp_path, given, weighed):
    chosen = settings(tmp_path, {"promise": "class"}, {"class_weights": given})
    assert plan_promise(chosen, LABELLED).class_weights == weighed


def test_aps_under_a_promise_per_class_is_warned_of(tmp_path):
    plan = plan_promise(settings(tmp_path, {"promise": "class", "score": "APS"}), LABELLED)
    assert any("up to 40 % larger than TPS" in sentence for sentence in plan.sentences)


@pytest.mark.parametrize(
    ("conformal", "reason"),
    [
        ({"promise": "class", "classes": {"mole": 0.1}}, "'mole', which is no class"),
        ({"promise": "group", "group": "kind"}, "class_property"),
    ],
)
def test_a_promise_that_cannot_be_read_is_refused(tmp_path, conformal, reason):
    with pytest.raises(ConfigError, match=reason):
        plan_promise(settings(tmp_path, conformal), LABELLED)


@pytest.mark.parametrize(
    "conformal",
    [
        {"classes": {"mule": 0.1}},
        {"promise": "class", "classes": {"mule": 1.5}},
        {"promise": "group"},
        {"group": "region"},
        {"promise": "class", "group": "region"},
    ],
)
def test_settings_that_do_not_belong_together_are_refused(tmp_path, conformal):
    with pytest.raises(ConfigError):
        settings(tmp_path, conformal)


def test_a_class_with_its_own_share_keeps_roles_nested_and_leaves_the_others_alone(tmp_path):
    keys = [f"i:{i}" for i in range(4_000)]
    classes = ["mule" if i % 10 == 0 else "normal" for i in range(4_000)]
    model = settings(tmp_path).model
    plain, own = (_role_masks(keys, classes, model, shares) for shares in ({}, {"mule": 0.6}))
    mule = np.array(classes) == "mule"
    assert own["calibration"][mule].mean() == pytest.approx(0.6, abs=0.08)
    assert not (plain["calibration"] & ~own["calibration"]).any()
    for role in plain:
        assert (plain[role][~mule] == own[role][~mule]).all()
    assert (sum(mask.astype(int) for mask in own.values()) == 1).all()
