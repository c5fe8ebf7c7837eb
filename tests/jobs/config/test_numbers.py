"""Values that can't be: every numeric setting refuses them in words, none ends in a traceback."""

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.connector.errors import ConfigError, FolderError
from ringfence.connector.files import make_private_folder
from ringfence.jobs.config.load import load, load_values
from ringfence.jobs.config.section import largest_number
from ringfence.jobs.config.settings import tables

GRAPH = {"label": "Account", "key": "id", "features": "x", "class_property": "kind"}


def numbers_in(annotation):
    """The types of numbers that an annotation allows."""
    if annotation in (int, float):
        return {annotation}
    return set().union(*map(numbers_in, get_args(annotation)), set())


NUMERIC = [
    (section, name)
    for section, kind in tables()
    for name, field in kind.model_fields.items()
    if numbers_in(field.annotation) and not str(field.annotation).startswith("dict")
]
IMPOSSIBLE = [math.inf, -math.inf, math.nan, 1e300, -1e300, 10**26, -(10**26)]


def read(tmp_path, section, name, value):
    values = {"graph": dict(GRAPH)}
    values.setdefault(section, {})[name] = value
    return load_values(values, tmp_path / "ringfence.toml", {})


def test_the_list_has_the_settings_that_were_seen_to_fail():
    assert {("engine", "lease_seconds"), ("engine", "read_rows")} <= set(NUMERIC)
    assert len(NUMERIC) > 40


@pytest.mark.parametrize("value", IMPOSSIBLE, ids=str)
@pytest.mark.parametrize(("section", "name"), NUMERIC)
def test_a_number_that_can_not_be_is_an_error_with_its_setting(tmp_path, section, name, value):
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, section, name, value)
    assert f"[{section}] {name}" in refused.value.found
    assert refused.value.needed
    assert "ringfence doctor" in refused.value.next_step


@given(data=st.data())
def test_what_is_accepted_is_finite_and_has_room(tmp_path_factory, data):
    section, name = data.draw(st.sampled_from(NUMERIC))
    value = data.draw(st.integers() | st.floats())
    try:
        settings = read(tmp_path_factory.getbasetemp(), section, name, value)
    except ConfigError:
        return
    accepted = getattr(getattr(settings, section), name)
    assert math.isfinite(accepted)
    assert abs(accepted) <= largest_number(name)


def test_a_hundred_years_after_today_fit_a_column_of_64_bits():
    nanoseconds = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
    for unit, seconds in nanoseconds.items():
        assert largest_number(f"x_{unit}") * seconds * 10**9 + 2 * 10**18 < 2**63


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5_000 + "]" * 5_000,
        "x = " + "{a = " * 5_000 + "1" + "}" * 5_000,
        "[" + ".".join(["a"] * 5_000) + "]\nb = 1",
        "[engine]\nread_rows = " + "9" * 5_000,
        "[engine]\nread_rows = 1" + "0" * 26,
        "[engine]\nlease_seconds = inf",
        "[engine]\nlease_seconds = 1e300",
    ],
    ids=["lists", "tables", "names", "digits", "read_rows", "inf", "1e300"],
)
def test_a_file_that_can_not_be_read_is_an_error_in_three_parts(tmp_path, text):
    path = tmp_path / "ringfence.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(path, {})
    assert refused.value.found
    assert refused.value.needed
    assert refused.value.next_step
    assert len(refused.value.found) < 1_000


@pytest.mark.parametrize("text", ["[" * 5_000, "[1" + "0" * 5_000 + "]", "{" * 9])
def test_an_environment_that_can_not_be_read_is_an_error_too(tmp_path, text):
    path = tmp_path / "ringfence.toml"
    path.write_text("")
    with pytest.raises(ConfigError):
        load(path, {"RINGFENCE_CONFORMAL_ALPHA": text})


def test_a_file_that_may_not_be_read_is_an_error_too(tmp_path):
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path, {})  # a folder, where a file is needed


def test_a_folder_that_can_not_be_made_is_an_error_in_three_parts(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "below", tmp_path / ("x" * 300), tmp_path / "nul\0"):
        with pytest.raises(FolderError) as refused:
            make_private_folder(folder)
        assert "can't be made" in refused.value.found
        assert refused.value.needed
        assert refused.value.next_step
