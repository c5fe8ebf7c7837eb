"""Which server a project uses: RINGFENCE_*, the file, Aura's file, NEO4J_*, defaults, in turn."""

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.load import load, load_values
from ringfence.jobs.config.sources.server import read_credentials
from ringfence.jobs.setup.checks.environment import check_environment

GRAPH = '[graph]\nlabel = "A"\nkey = "id"\nfeatures = "x"\nclass_property = "kind"\n'
AURA = """\
# Wait 60 seconds before connecting using these details
NEO4J_URI=neo4j+s://1a2b.databases.neo4j.io
NEO4J_USERNAME=1a2b
NEO4J_PASSWORD=p=q"r'
NEO4J_DATABASE=1a2b
AURA_INSTANCEID=1a2b
AURA_INSTANCENAME=Instance01
"""
OTHERS = {
    "NEO4J_URI": "bolt://localhost:7999",
    "NEO4J_USERNAME": "else",
    "NEO4J_PASSWORD": "theirs",
    "NEO4J_DATABASE": "shop",
}


@pytest.fixture
def server(tmp_path):
    """Return uri, user, password and database of a file with these lines in [neo4j]."""

    def of(lines="", environment=None):
        path = tmp_path / "ringfence.toml"
        path.write_text(f"[neo4j]\n{lines}\n{GRAPH}", encoding="utf-8")
        neo4j = load(path, environment or {}).neo4j
        password = neo4j.password and neo4j.password.get_secret_value()
        return neo4j.uri, neo4j.user, password, neo4j.database

    return of


def test_a_file_without_the_lines_stays_on_the_embedded_server_and_neo4j(server):
    assert server() == ("embedded", "neo4j", None, "neo4j")
    assert server('uri = "bolt://localhost"')[3] == "neo4j"


def test_neo4j_variables_count_where_no_address_is_named(server):
    assert server("", OTHERS) == ("bolt://localhost:7999", "else", "theirs", "shop")
    only = {"NEO4J_URI": "bolt://localhost:7999", "NEO4J_PASSWORD": "theirs"}
    assert server("", only) == ("bolt://localhost:7999", "neo4j", "theirs", "")


def test_neo4j_variables_without_an_address_say_nothing(server):
    assert server("", {"NEO4J_PASSWORD": "theirs", "NEO4J_DATABASE": "shop"}) == (
        "embedded", "neo4j", None, "neo4j",
    )  # fmt: skip


def test_another_applications_variables_never_move_a_project(server):
    assert server('uri = "bolt://localhost"', OTHERS) == (
        "bolt://localhost", "neo4j", None, "neo4j",
    )  # fmt: skip
    assert server('uri = "embedded"', OTHERS)[0] == "embedded"
    ours = {"RINGFENCE_NEO4J_URI": "bolt://localhost:1"}
    assert server("", OTHERS | ours) == ("bolt://localhost:1", "neo4j", None, "neo4j")


def test_a_file_without_an_address_stays_on_the_embedded_server_that_it_has(server, tmp_path):
    assert server("", OTHERS)[0] == OTHERS["NEO4J_URI"]  # the control: there is none yet
    (tmp_path / ".ringfence" / "neo4j").mkdir(parents=True)
    assert server("", OTHERS) == ("embedded", "neo4j", None, "neo4j")
    assert server('[engine]\nfolder = "elsewhere"', OTHERS)[0] == OTHERS["NEO4J_URI"]
    ours = {"RINGFENCE_NEO4J_URI": "bolt://localhost:1"}
    assert server("", OTHERS | ours)[0] == "bolt://localhost:1"
    elsewhere = {"RINGFENCE_ENGINE_FOLDER": str(tmp_path / "elsewhere")}
    assert server("", OTHERS | elsewhere)[0] == OTHERS["NEO4J_URI"]


def test_a_first_file_may_name_another_server_than_the_folders(tmp_path):
    (tmp_path / ".ringfence" / "neo4j").mkdir(parents=True)
    graph = {"label": "A", "key": "id", "features": "x", "class_property": "kind"}
    path = tmp_path / "ringfence.toml"
    new = load_values({"graph": dict(graph)}, path, OTHERS, is_new=True)
    assert new.neo4j.uri == OTHERS["NEO4J_URI"]
    assert load_values({"graph": dict(graph)}, path, OTHERS).neo4j.uri == "embedded"


def test_doctor_says_that_another_applications_address_is_ignored():
    (told,) = check_environment(OTHERS, "embedded")
    assert "NEO4J_URI of the environment is not this project's server" in told.text
    assert list(check_environment(OTHERS, OTHERS["NEO4J_URI"] + "/")) == []


def test_their_password_is_taken_for_their_server_and_user_alone(server):
    lines = 'uri = "bolt://localhost:7999/"\nuser = "else"\ndatabase = "mine"'
    assert server(lines, OTHERS) == ("bolt://localhost:7999/", "else", "theirs", "mine")
    assert server(lines.replace("else", "me"), OTHERS)[2] is None
    ours = {"RINGFENCE_NEO4J_PASSWORD": "ours"}
    assert server(lines, OTHERS | ours)[2] == "ours"


def test_auras_file_gives_what_the_table_leaves_open(server, tmp_path):
    (tmp_path / "aura.txt").write_text(AURA, encoding="utf-8")
    uri = "neo4j+s://1a2b.databases.neo4j.io"
    assert server('credentials = "aura.txt"', OTHERS) == (uri, "1a2b", "p=q\"r'", "1a2b")
    lines = f'credentials = "aura.txt"\nuri = "{uri}"\ndatabase = "other"\nuser = "me"'
    assert server(lines) == (uri, "me", "p=q\"r'", "other")
    ours = {"RINGFENCE_NEO4J_USER": "us", "RINGFENCE_NEO4J_PASSWORD": "ours"}
    assert server(lines, ours)[1:3] == ("us", "ours")


def test_a_password_is_not_sent_to_another_server_than_its_files(server, tmp_path):
    (tmp_path / "aura.txt").write_text(AURA, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        server('credentials = "aura.txt"\nuri = "bolt://localhost"')
    assert "1a2b.databases.neo4j.io, and [neo4j] uri is bolt://localhost" in refused.value.found


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"CLIENT_ID=a\nCLIENT_SECRET=hidden\n", "it has: CLIENT_ID, CLIENT_SECRET"),
        (b"", "it has: no NAME=value"),
        (b"NEO4J_URI=bolt://localhost\n", "has no NEO4J_PASSWORD"),
        (b"\xff\xfe\x00", "is no text in UTF-8"),
        (b"x" * 70_000, "is larger than 65536 bytes"),
    ],
)
def test_a_file_with_other_content_is_refused_without_its_values(tmp_path, content, found):
    path = tmp_path / "aura.txt"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        read_credentials(path)
    assert found in refused.value.found
    assert "hidden" not in str(refused.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError) as refused:
        read_credentials(tmp_path / "aura.txt")
    assert "aura.txt can't be read: No such file" in refused.value.found
    with pytest.raises(ConfigError):
        read_credentials(tmp_path)


def test_quotes_export_and_windows_line_ends_are_taken(tmp_path):
    path = tmp_path / "aura.txt"
    path.write_bytes(
        b"\xef\xbb\xbfexport NEO4J_URI=\"bolt://localhost\"\r\nNEO4J_PASSWORD='a b'\r\n"
    )
    assert read_credentials(path) == {"uri": "bolt://localhost", "password": "a b"}
