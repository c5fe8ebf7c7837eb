"""The configuration: typed, checked, overridable, without secrets; and documented in one place."""

from pathlib import Path

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.connector.neo4j.access.address import check_uri
from ringfence.jobs.config.load import known_keys, load, variable
from ringfence.jobs.config.reference import reference

MINIMAL = """
[graph]
label = "Account"
key = "id"
features = "x"
class_property = "kind"
"""


@pytest.fixture
def write(tmp_path):
    def write(text=MINIMAL):
        path = tmp_path / "ringfence.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_minimal_file_gets_the_documented_defaults(write, tmp_path):
    settings = load(write(), {})
    assert settings.conformal.alpha == 0.1
    assert settings.engine.folder == tmp_path / ".ringfence"
    assert settings.audit.url == f"sqlite:///{tmp_path / '.ringfence/audit.db'}"
    mapping = settings.mapping()
    assert (mapping.column_names, mapping.features_are_list) == ((("x",),), True)


def test_several_properties_can_be_features(write):
    path = write(MINIMAL.replace('"x"', '["age", "balance"]'))
    assert load(path, {}).mapping().classified.column_names == ("age", "balance")
    assert not load(path, {}).mapping().features_are_list


def test_the_environment_wins_over_the_file(write):
    environment = {
        "RINGFENCE_CONFORMAL_ALPHA": "0.05",
        "RINGFENCE_PROJECT": "payments",
        "RINGFENCE_GRAPH_FEATURES": '["a", "b"]',
        "RINGFENCE_GRAPH_RELATIONSHIPS": '[{"type": "PAID", "undirected": false}]',
        "RINGFENCE_NEO4J_PASSWORD": "secret",
    }
    settings = load(write(), environment)
    assert (settings.conformal.alpha, settings.project) == (0.05, "payments")
    assert settings.mapping().relations[0].undirected is False
    assert settings.neo4j.password.get_secret_value() == "secret"
    assert "'secret'" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[conformal]\nalpa = 0.1", r"no setting \[conformal\] alpa; did you mean alpha\?"),
        ("[conformel]\nalpha = 0.1", r"no setting conformel; did you mean conformal\?"),
        ('[[graph.relationships]]\ntype = "A"\nundirect = true', "did you mean undirected"),
        (
            "[conformal]\nalpha = 1.5",
            r"\[conformal\] alpha: 1.5 is no share of nodes",
        ),
        (
            '[conformal]\nrule = "Naive"',
            r"\[conformal\] rule: input should be 'auto', 'NodeEx' or 'EdgeEx'",
        ),
        ("[model]\ntrain = 0.9", "train \\+ validation \\+ calibration is 1.4"),
        ("[conformal\nalpha = 1", "is not TOML"),
        ("[schedule]\nstale_seconds = 2", "is not above tick_seconds = 5"),
        ("[audit]\nkeep_days = 9\nretention_days = 90", "says must be kept"),
        ("[audit]\nkeep_days = -1", r"\[audit\] keep_days: "),
    ],
)
def test_a_wrong_setting_is_named_with_the_nearest_right_one(write, text, message):
    with pytest.raises(ConfigError, match=message):
        load(write(MINIMAL + text), {})


def test_a_missing_setting_and_a_missing_file_are_named(write, tmp_path):
    with pytest.raises(ConfigError, match=r"\[graph\] key is missing"):
        load(write(MINIMAL.replace('key = "id"\n', "")), {})
    with pytest.raises(ConfigError, match="ringfence init"):
        load(tmp_path / "absent.toml", {})


@pytest.mark.parametrize(
    "line", ['[neo4j]\npassword = "p"', '[audit]\npassword = "p"', '[audit]\nkey = "p"']
)
def test_a_secret_in_the_file_is_refused(write, line):
    with pytest.raises(ConfigError, match="RINGFENCE_"):
        load(write(MINIMAL + line), {})


def test_a_misspelt_variable_is_an_error_and_not_silence(write):
    with pytest.raises(ConfigError, match="did you mean RINGFENCE_CONFORMAL_ALPHA"):
        load(write(), {"RINGFENCE_CONFORMAL_ALPA": "0.2"})


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("bolt://neo4j:secret@localhost", "holds a user or a password"),
        ("http://localhost:7474", "bolt"),
        ("bolt://db.example.com", "plain text"),
        ("neo4j://10.0.0.1", "plain text"),
    ],
)
def test_uris_that_leak_are_refused(uri, message):
    with pytest.raises(ConfigError, match=message) as caught:
        check_uri(uri, "required")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    ["bolt://localhost:7687", "bolt://127.0.0.1", "bolt://[::1]:7687", "neo4j+s://db.example.com"],
)
def test_loopback_and_encrypted_uris_are_fine(uri):
    check_uri(uri, "required")


def test_plain_text_can_be_switched_on_on_purpose():
    check_uri("bolt://db.example.com", "off")


def test_every_setting_stands_in_the_reference_page():
    page = Path(__file__).resolve().parents[3] / "docs" / "configuration.md"
    assert page.read_text(encoding="utf-8") == reference(), "run: make docs"
    for section, key in known_keys():
        assert f"`{key}`" in reference()
        assert variable(section, key) in reference()
