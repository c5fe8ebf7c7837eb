"""A release is the same bytes wherever it is built, and a changed byte is seen."""

import doctest
import json
import os
import re
import shutil
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

from tests.packaging import release
from tests.packaging.distribution import ROOT, copy_of_the_tracked_files
from tests.packaging.release import (
    LOCKS,
    NotReproducible,
    bill_of_materials,
    build_release,
    check_out,
    find_differences,
    list_components,
    normalize_sdist,
    read_commit,
)

SECONDS = 1_800_000_000


def test_the_examples_hold():
    assert doctest.testmod(release).failed == 0


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The tracked files as they are now, and stay while the tests run."""
    return copy_of_the_tracked_files(tmp_path_factory.mktemp("tree") / "source")


@pytest.fixture(scope="module")
def built(tree, tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    return build_release(copy_of(tree, folder / "source"), folder / "built", SECONDS)


def copy_of(tree, folder):
    return Path(shutil.copytree(tree, folder))


@pytest.mark.slow
def test_another_build_at_another_time_and_place_is_the_same_bytes(tree, built, tmp_path):
    mask = os.umask(0o077)
    try:
        source = copy_of(tree, tmp_path / "elsewhere" / "a source")
        for path in source.rglob("*"):
            os.utime(path, (SECONDS, SECONDS - 86_400))
        again = build_release(source, tmp_path / "built", SECONDS)
    finally:
        os.umask(mask)
    assert [find_differences(*pair) for pair in zip(built, again, strict=True)] == [[], []]
    assert {file.name.partition("-")[0] for file in again} == {"ringfence"}


@pytest.mark.slow
def test_a_changed_byte_is_seen_and_named(tree, built, tmp_path):
    """The negative control; and the time of the commit is in every archive."""
    source = copy_of(tree, tmp_path / "source")
    wheel, sdist = build_release(source, tmp_path / "later", SECONDS + 3600)
    for one, other in zip(built, (wheel, sdist), strict=True):
        assert find_differences(one, other) == [f"{one.name}: order, times or modes of its files"]
    name = "jobs/dashboard/templates/base.html"
    text = (source / name).read_text("utf-8")
    (source / name).write_text(text[:-2] + " " + text[-1:], "utf-8")
    wheel, sdist = build_release(source, tmp_path / "built", SECONDS)
    assert find_differences(built[0], wheel) == [
        f"ringfence-{version()}.dist-info/RECORD",
        f"ringfence/{name}",
    ]
    assert find_differences(built[1], sdist) == [f"ringfence-{version()}/{name}"]


@pytest.mark.slow
def test_the_sdist_is_written_anew_as_it_is(built):
    before = built[1].read_bytes()
    normalize_sdist(built[1], SECONDS)
    assert built[1].read_bytes() == before


@pytest.mark.slow
def test_times_in_the_wheel_are_the_commits(built):
    with zipfile.ZipFile(built[0]) as wheel:
        times = {one.date_time for one in wheel.infolist()}
    assert times == {time.gmtime(SECONDS)[:6]}


def version():
    return re.search(r'^version = "(.+?)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]


def test_a_tree_that_is_not_its_commit_is_refused(monkeypatch):
    told = {"status": " M README.md", "log": f"{'ab' * 20} 1800000000"}
    monkeypatch.setattr(release, "_git", lambda verb, *_: told[verb])
    with pytest.raises(NotReproducible, match=r"not as committed: M README.md"):
        read_commit()
    told["status"] = ""
    assert read_commit() == ("ab" * 20, SECONDS)


def test_the_bill_has_every_package_of_the_locks_once_and_no_host(tmp_path):
    files = [tmp_path / "a.whl", tmp_path / "a.tar.gz"]
    for file in files:
        file.write_bytes(file.name.encode())
    bill = bill_of_materials(ROOT, *files, "ab" * 20, SECONDS)
    assert bill == bill_of_materials(ROOT, *files, "ab" * 20, SECONDS)
    assert bill["metadata"]["timestamp"].startswith("2027-01-15T")
    pinned = {
        pin
        for lock in LOCKS
        for pin in re.findall(r"^([\w.-]+==[^ \\\n]+)", (ROOT / lock).read_text("utf-8"), re.M)
    }
    named = [f"{one['name']}=={one['version']}" for one in bill["components"]]
    assert (len(named), set(named)) == (len(pinned), pinned)
    assert len({one["bom-ref"] for one in bill["components"]}) == len(named) > 60
    text = json.dumps(bill).replace(bill["$schema"], "")
    assert "://" not in text
    for one in bill["components"]:
        assert one["externalReferences"][0]["hashes"], one["name"]


def test_a_package_that_a_lock_forgets_is_missed(tmp_path):
    """The negative control."""
    for lock in LOCKS:
        text = (ROOT / lock).read_text("utf-8")
        (tmp_path / lock).write_text(re.sub(r"^numpy==", "no match ", text, flags=re.M), "utf-8")
    forgotten = {one["name"] for one in list_components(ROOT)}
    assert forgotten - {one["name"] for one in list_components(tmp_path)} == {"numpy"}


def test_what_is_built_is_the_commit_and_not_what_is_edited_meanwhile(tmp_path):
    source = check_out("HEAD", tmp_path / "source")
    held = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    told = subprocess.run(
        ["git", "ls-tree", "-r", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 3) for line in told.stdout.splitlines()]
    assert held == {name for mode, _, _, name in rows if mode != "120000"}  # a link's
    name = "pyproject.toml"
    kept = subprocess.run(
        ["git", "show", f"HEAD:{name}"], cwd=ROOT, capture_output=True, check=True
    )
    assert (source / name).read_bytes() == kept.stdout
