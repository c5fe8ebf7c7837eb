"""The sdist holds every file that git knows, and a wheel built from it is the wheel of the tree."""

import pytest

from tests.packaging.distribution import (
    build,
    copy_of_the_tracked_files,
    sdist_files,
    tracked,
    unpack,
    wheel_contents,
)

pytestmark = pytest.mark.slow  # each build takes seconds
MADE_BY_SETUPTOOLS = {"PKG-INFO", "setup.cfg"}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return copy_of_the_tracked_files(tmp_path_factory.mktemp("tree") / "source")


@pytest.fixture(scope="module")
def sdist(source, tmp_path_factory):
    return build(source, tmp_path_factory.mktemp("sdist"), "sdist")


def test_the_sdist_holds_every_tracked_file_and_no_other(sdist):
    held = {name for name in sdist_files(sdist) if ".egg-info/" not in name}
    assert held - MADE_BY_SETUPTOOLS == set(tracked())


def test_a_wheel_built_from_the_sdist_is_the_wheel_of_the_tree(source, sdist, tmp_path):
    of_the_tree = wheel_contents(build(source, tmp_path / "tree"))
    unpacked = unpack(sdist, tmp_path / "unpacked")
    of_the_sdist = wheel_contents(build(unpacked, tmp_path / "wheel"))
    assert len(of_the_tree) > 300
    assert of_the_sdist == of_the_tree


def test_a_file_that_the_manifest_forgets_is_noticed(source, tmp_path):
    """The negative control."""
    manifest = (source / "MANIFEST.in").read_text("utf-8")
    assert "graft docs\n" in manifest
    other = copy_of_the_tracked_files(tmp_path / "source")
    (other / "MANIFEST.in").write_text(manifest.replace("graft docs\n", ""), "utf-8")
    held = sdist_files(build(other, tmp_path / "sdist", "sdist"))
    assert "docs/design.md" in set(tracked()) - held
