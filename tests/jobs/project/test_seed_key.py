"""The seed key's text, digest and files."""

import os
import stat

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.load import load
from ringfence.jobs.project.seed_key import (
    KEY_FILE,
    SeedKey,
    SeedKeys,
    parse_seed_key,
    seed_keys,
)
from ringfence.models.hashing import SCORE, uniforms

SECRET = "c0ffee5e1f5e1f00ba5eba11deadbea7"
OTHER = "0123456789abcdef0123456789abcdef"


def test_a_key_of_zeros_is_seed_0():
    key = parse_seed_key("0" * 32, "here")
    assert uniforms(["s:a"], key.value, SCORE) == uniforms(["s:a"], 0, SCORE)
    other = parse_seed_key(SECRET, "here")
    assert uniforms(["s:a"], other.value, SCORE) != uniforms(["s:a"], 0, SCORE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has 0 hexadecimal digits"),
        (SECRET[:31], "has 31 hexadecimal digits"),
        ("f" * 129, "has 129 hexadecimal digits"),
        ("correct horse battery staple, again!", "no hexadecimal digits"),
        (f"0x{SECRET}", "no hexadecimal digits"),
        ("٣" * 32, "no hexadecimal digits"),  # digits of another script
    ],
)
def test_what_is_no_key_of_128_bits_is_refused_without_repeating_it(text, said):
    with pytest.raises(ConfigError, match=said) as refused:
        parse_seed_key(text, "RINGFENCE_SEED_KEY")
    assert not text or text not in str(refused.value)


def test_spaces_around_a_key_and_capitals_do_not_change_it():
    key = parse_seed_key(f" {SECRET.upper()}\n", "here")
    assert key.digest == parse_seed_key(SECRET, "there").digest


def test_digests_tell_keys_apart_and_hold_nothing_of_them():
    digests = {SeedKey(value, "").digest for value in (*range(100), int(SECRET, 16))}
    assert len(digests) == 101
    assert all(len(digest) == 32 for digest in digests)


def test_no_text_of_a_key_or_its_places_holds_it(tmp_path):
    key = parse_seed_key(SECRET, "here")
    shown = f"{key!r} {key} {SeedKeys(SECRET, tmp_path)!r} {key.name} {key.digest}"
    assert SECRET not in shown
    assert str(key.value) not in shown


@pytest.mark.parametrize(
    ("text", "guessable"),
    [("0" * 32, True), (f"{7:032x}", True), ("ab" * 16, True), ("f" * 64, True), (SECRET, False)],
)
def test_small_numbers_and_patterns_are_guessable(text, guessable):
    assert parse_seed_key(text, "").is_guessable is guessable


def test_a_key_that_was_made_is_random(tmp_path):
    made = [SeedKeys(None, tmp_path / str(n)).write() for n in range(20)]
    assert len({key.value for key in made}) == 20
    assert not any(key.is_guessable for key in made)


def test_a_key_is_written_once_for_this_user_alone(tmp_path):
    keys = SeedKeys(None, tmp_path / "projects" / "p")
    made = keys.write()
    assert stat.S_IMODE(keys.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(keys.folder.stat().st_mode) == 0o700
    assert keys.write() == made == keys.current()  # another process was first: its key counts
    assert [path.name for path in keys.folder.iterdir()] == [KEY_FILE]


def test_a_file_that_others_can_read_is_refused(tmp_path):
    keys = SeedKeys(None, tmp_path)
    keys.write()
    for mode in (0o640, 0o604, 0o660):
        keys.file.chmod(mode)
        with pytest.raises(ConfigError, match=f"mode {mode:04o}") as refused:
            keys.current()
        assert refused.value.next_step == f"chmod 600 {keys.file}"
    keys.file.chmod(0o400)
    assert keys.current() is not None


def test_a_torn_file_is_refused(tmp_path):
    keys = SeedKeys(None, tmp_path)
    keys.write()
    os.truncate(keys.file, 20)
    with pytest.raises(ConfigError, match="has 20 hexadecimal digits"):
        keys.current()


def test_a_key_is_found_by_its_digest(tmp_path):
    keys = SeedKeys(None, tmp_path)
    first = keys.write()
    keys.set_aside()
    assert keys.current() is None
    second = keys.write()
    assert first.value != second.value
    configured = SeedKeys(SECRET, tmp_path)
    current = configured.current()
    assert current is not None
    assert current.place == "RINGFENCE_SEED_KEY"  # the variable counts before the file
    for key in (first, second, current):
        assert configured.find(key.digest).value == key.value
    assert configured.find(parse_seed_key(OTHER, "").digest) is None


def test_the_key_comes_from_the_environment_alone(tmp_path):
    file = tmp_path / "ringfence.toml"
    graph = '[graph]\nlabel = "A"\nkey = "id"\nfeatures = "x"\nclass_property = "kind"\n'
    file.write_text(graph)
    settings = load(file, {"RINGFENCE_SEED_KEY": SECRET})
    assert seed_keys(settings).current().value == int(SECRET, 16)
    assert settings.digest() == load(file, {}).digest()  # no part of what a run records
    assert SECRET not in repr(settings)
    file.write_text(f'seed_key = "{SECRET}"\n{graph}')
    with pytest.raises(ConfigError, match="holds seed_key") as refused:
        load(file, {})
    assert "export RINGFENCE_SEED_KEY=" in refused.value.next_step
    assert SECRET not in str(refused.value)
