"""Registries of kinds: names without imports, kinds on demand, unknown names refused."""

import subprocess
import sys

import pytest

from ringfence.models.calibration.sets.registry import CALIBRATION_SETS, calibration_set_named
from ringfence.models.kind_registry import KindRegistry
from ringfence.models.promise.registry import PROMISES, promise_named
from ringfence.models.rules.registry import RULES, rule_named
from ringfence.models.scores.registry import SCORES


@pytest.mark.parametrize("registry", [CALIBRATION_SETS, PROMISES, RULES, SCORES])
def test_a_kind_is_registered_under_its_own_name(registry):
    assert registry
    assert [kind.name for kind in registry.values()] == list(registry)


@pytest.mark.parametrize(
    ("named", "says"),
    [
        (rule_named, "rule 'EveryEx' is unknown; needed: one of auto, NodeEx, EdgeEx"),
        (promise_named, "promise 'EveryEx' is unknown; needed: one of marginal, class, group"),
        (
            calibration_set_named,
            "calibration set 'EveryEx' is unknown; needed: one of window, growing, frozen",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_the_names_there_are(named, says):
    with pytest.raises(ValueError, match=says):
        named("EveryEx")


def test_names_are_known_before_their_kinds_are_imported():
    code = (
        "import sys\n"
        "from ringfence.jobs.config.conformal import ConformalSettings\n"
        "ConformalSettings(rule='EdgeEx', calibration_set='frozen')\n"
        "print('numpy' in sys.modules)\n"
        "from ringfence.models.rules.registry import rule_named\n"
        "rule_named('EdgeEx')\n"
        "print('numpy' in sys.modules)"  # the control: an import would be noticed
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "True"]


def test_a_kind_can_be_added_and_taken_away():
    registry: KindRegistry[float] = KindRegistry("constant", {"pi": "math:pi"})
    registry["e"] = 2.7
    assert (registry.named("e"), len(registry), list(registry)) == (2.7, 2, ["pi", "e"])
    assert round(registry.named("pi"), 2) == 3.14
    del registry["e"]
    assert list(registry) == ["pi"]
