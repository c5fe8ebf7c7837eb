"""What the pages tell a reader to type runs, in their order, on the tutorial's project."""

import ast
import doctest
import json
import subprocess
import tomllib

import pytest
import yaml
from neo4j.exceptions import Neo4jError
from sqlalchemy import create_engine, make_url, text
from typer.testing import CliRunner

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.migrate import migrate_sql
from ringfence.jobs.cli.app import app
from ringfence.jobs.config.load import load_values
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.jobs.samples.payments import PAYMENTS_TOML
from tests.docs import page_blocks
from tests.docs.page_blocks import DOCS, blocks_of, commands_of
from tests.docs.test_cookbook import DEMO_RECIPES, MAY_BE_NONE
from tests.examples.test_deployment import parse

PAGES = ("tutorial.md", "how-to.md", "operations.md")
SMALL_DEMO = ("--nodes", "1000", "--arriving", "2")
STAYS_OPEN = {"serve"}  # tests/dashboard/test_api.py starts it and ends it
# so few accounts may well miss (4); doctor suspects the column `balance` of the sample graph (1)
OTHER_CODES = {"audit": 4, "doctor": 1}


@pytest.mark.long
def test_every_command_query_and_example_runs(neo4j_server, graph, tmp_path, monkeypatch):
    """One project for all: the demo, made smaller, on the tests' own server."""
    monkeypatch.chdir(tmp_path)
    for name, value in (("URI", neo4j_server.uri), ("USER", neo4j_server.user),
                        ("PASSWORD", neo4j_server.password)):  # fmt: skip
        monkeypatch.setenv(f"RINGFENCE_NEO4J_{name}", value)
    monkeypatch.setenv("RINGFENCE_NEO4J_TLS", "off")
    reader = Reader(monkeypatch)
    for page in PAGES:
        for block in blocks_of(page, "bash"):
            for command in commands_of(block):
                reader.type(command)
        space = {}
        for block in blocks_of(page, "python"):
            exec(compile(block.text, page, "exec"), space)  # a page of ours
    for block in blocks_of("tutorial.md", "cypher"):
        assert graph.run(block.text)
    assert reader.count > 25
    silent = [title for title, query in DEMO_RECIPES if not graph.run(query)]
    assert set(silent) <= MAY_BE_NONE | {"Known accounts that their set missed"}


class Reader:
    """Types the commands of a page, and keeps what they need to know of each other."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch
        self.key = None
        self.count = 0

    def type(self, command):
        program, *words = command
        if program == "export":
            name, _, value = words[0].partition("=")
            self.monkeypatch.setenv(name, value)
            return
        assert program == "ringfence", command
        if "KEY" in words:
            words = [self.find_key() if word == "KEY" else word for word in words]
        if words[0] in STAYS_OPEN:
            parse(words)
            return
        words += SMALL_DEMO if words[0] == "demo" else ()
        done = CliRunner().invoke(app, words)
        allowed = (0, OTHER_CODES.get(words[0], 0))
        assert done.exit_code in allowed, (words, done.output[-2000:], done.exception)
        assert "Traceback" not in done.output
        self.count += 1

    def find_key(self):
        if self.key is None:
            words = ["worklist", "mule", "--limit", "1", "--state", "any", "--json"]
            listed = json.loads(CliRunner().invoke(app, words).stdout)
            self.key = str(listed[0]["node"])
        return self.key


def test_the_examples_of_the_reader_hold():
    assert doctest.testmod(page_blocks).failed == 0


def test_a_command_that_does_not_exist_is_noticed(tmp_path, monkeypatch):
    """The negative control."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError):
        Reader(monkeypatch).type(["ringfence", "worklst", "mule"])


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_one_that_the_command_line_takes(page):
    """The quick half of the test above, which takes a minute."""
    commands = [one for block in blocks_of(page, "bash") for one in commands_of(block)]
    assert commands
    for program, *words in commands:
        if program != "export":
            assert program == "ringfence"
            parse(words)


@pytest.mark.parametrize("page", PAGES)
def test_shell_blocks_that_need_other_programs_are_shell(page):
    for block in blocks_of(page, "sh"):
        done = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, ""), block.text
        for command in commands_of(block):
            if command[0] == "ringfence":
                parse(command[1:3] if command[1] == "models" else command[1:])


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_settings_in_a_page_are_settings_that_exist(page, tmp_path):
    for block in blocks_of(page, "toml"):
        values = tomllib.loads(block.text)
        base = tomllib.loads(PAYMENTS_TOML) if "graph" not in values else {}
        base.pop("conformal", None)  # a page's promise need not go with that of the demo
        merged = base | {
            name: base.get(name, {}) | value if isinstance(value, dict) else value
            for name, value in values.items()
        }
        load_values(merged, tmp_path / "ringfence.toml", {})


@pytest.mark.parametrize("page", PAGES)
def test_yaml_and_python_in_a_page_can_be_read(page):
    for block in blocks_of(page, "yaml"):
        assert yaml.safe_load(block.text)
    for block in blocks_of(page, "python"):
        ast.parse(block.text)


@pytest.mark.neo4j
def test_the_rights_in_neo4j_are_statements_that_a_server_can_read(neo4j_driver):
    """Community parses them and refuses to run them; a misspelled one is an error of syntax."""

    def refusal(statement):
        with neo4j_driver.session(database="system") as session:
            try:
                session.run(statement).consume()
            except Neo4jError as error:
                return error.code
        return None

    statements = [
        statement
        for block in blocks_of("operations.md", "cypher")
        for statement in block.text.split(";")
        if statement.strip()
    ]
    assert len(statements) > 10
    codes = {statement.strip(): refusal(statement) for statement in statements}
    assert {code for code in codes.values() if code and "Syntax" in code} == set(), codes
    assert "Syntax" in refusal("GRANT EVERYTHING ON GRAPH neo4j TO ringfence")  # the control


@pytest.mark.parametrize("sql_url", ["postgresql"], indirect=True)
def test_the_rights_in_postgresql_are_enough_to_work_and_to_read(sql_url, tmp_path):
    address = make_url(sql_url)
    owner = create_engine(address, isolation_level="AUTOCOMMIT")
    bare = address._replace(password=None).render_as_string()
    password = None if address.password is None else str(address.password)
    store = open_store(bare, password)
    migrate_sql(store)
    store.close()
    (block,) = blocks_of("operations.md", "sql")
    with owner.connect() as connection:
        for role in ("ringfence_app", "ringfence_reader"):
            connection.execute(text(f"DROP ROLE IF EXISTS {role}"))
            connection.execute(text(f"CREATE ROLE {role} LOGIN PASSWORD 'none'"))
        for statement in filter(str.strip, block.text.split(";")):
            connection.execute(text(statement))
        try:
            _work_and_read(address, tmp_path)
        finally:
            for role in ("ringfence_app", "ringfence_reader"):
                connection.execute(text(f"DROP OWNED BY {role}"))
                connection.execute(text(f"DROP ROLE {role}"))
    owner.dispose()


def _work_and_read(address, tmp_path):
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
    }
    settings = load_values(values, tmp_path / "ringfence.toml", {})
    app_url = address._replace(username="ringfence_app", password=None).render_as_string()
    store = open_store(app_url, "none")
    fill_store(store, settings, Plan(runs=1, per_run=20))
    store.close()
    reader = create_engine(address.set(username="ringfence_reader", password="none"))
    with reader.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM ringfence_run")).scalar() == 1
    with reader.connect() as connection, pytest.raises(Exception, match="permission denied"):
        connection.execute(text("SELECT * FROM prediction"))
    reader.dispose()
    worker = create_engine(address.set(username="ringfence_app", password="none"))
    with worker.connect() as connection, pytest.raises(Exception, match="permission denied"):
        connection.execute(text("DELETE FROM audit"))
    worker.dispose()
