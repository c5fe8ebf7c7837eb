"""A worker's machine with other versions is refused, by name, before it computes anything."""

import pytest

from ringfence.connector.errors import ServerError
from ringfence.jobs.engines.software import PACKAGES, own_software, require_same_software


def test_the_same_versions_are_taken():
    require_same_software("10.0.0.7", own_software())


@pytest.mark.parametrize("package", PACKAGES)
def test_another_version_of_anything_that_computes_is_refused(package):
    here = own_software()[package]
    with pytest.raises(ServerError) as refused:
        require_same_software("10.0.0.7", own_software() | {package: "0.0.1"})
    expected = f"other software on 10.0.0.7: {package} 0.0.1, and {here} is installed here"
    assert refused.value.found == expected
    assert refused.value.next_step.endswith("(on 10.0.0.7)")


def test_a_machine_that_lacks_a_package_is_refused():
    with pytest.raises(ServerError, match="numba none, and"):
        require_same_software(
            "10.0.0.7",
            {"ringfence": own_software()["ringfence"]}
            | {
                "numpy": own_software()["numpy"],
            },
        )
