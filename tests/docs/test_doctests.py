"""Every example in a docstring runs and shows the numbers that it says."""

import doctest
import importlib
import pkgutil

import pytest

import ringfence.connector
import ringfence.jobs
import ringfence.models

ROOMS = (ringfence.connector, ringfence.jobs, ringfence.models)
SCRIPTS = {"ringfence.connector.neo4j.embedded.jvm"}  # the child's main, which starts a JVM


def modules():
    for room in ROOMS:
        for found in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
            if found.name not in SCRIPTS:
                yield found.name


@pytest.mark.parametrize("name", list(modules()))
def test_the_examples_of_a_module_hold(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_a_wrong_example_would_be_noticed():
    """The negative control."""
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    told = []
    assert doctest.DocTestRunner().run(wrong, out=told.append).failed == 1
