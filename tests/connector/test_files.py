"""A file is replaced whole, or stays as it was."""

import os
import stat

import pytest
from sqlalchemy import make_url

from ringfence.connector.files import (
    PRIVATE,
    PRIVATE_FOLDER,
    make_private_folder,
    open_private,
    write_atomically,
    write_durably,
)
from ringfence.connector.store.dialects.sqlite import SQLITE


def test_the_new_text_stands_alone_under_its_name_with_its_permissions(tmp_path):
    path = tmp_path / "state.json"
    write_atomically(path, "old")
    write_atomically(path, "new ∞", mode=PRIVATE)
    assert path.read_text(encoding="utf-8") == "new ∞"
    assert stat.S_IMODE(path.stat().st_mode) == PRIVATE
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_and_no_part_of_the_new(tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    write_atomically(path, "old")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
    write_atomically(path, "new", durable=False)  # which asks for no such promise
    assert path.read_text(encoding="utf-8") == "new"


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_new_files_and_folders_are_closed_to_other_users(tmp_path):
    before = os.umask(0o022)
    try:
        make_private_folder(tmp_path / "a" / "b")
        with open_private(tmp_path / "a" / "mapped", "ab"):
            pass
        write_durably(tmp_path / "a" / "weights", b"1")
        write_atomically(tmp_path / "a" / "state", "1")
        SQLITE.make_place(make_url(f"sqlite:///{tmp_path}/sql/audit.db"))
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {permissions(path) for path in made} == {PRIVATE}
    assert len(made) == 4
    folders = [tmp_path / name for name in ("a", "a/b", "sql")]
    assert {permissions(folder) for folder in folders} == {PRIVATE_FOLDER}


def test_a_folder_that_was_opened_to_others_stays_open(tmp_path):
    (tmp_path / "shared").mkdir(mode=0o755)
    make_private_folder(tmp_path / "shared" / "own")
    assert permissions(tmp_path / "shared") == 0o755
