"""The matrix of edits is whole: every table and kind of the graph stands in it, or is open."""

import re
from pathlib import Path

import ringfence
from ringfence.connector.neo4j.graph_record import OWN_PROPERTIES
from ringfence.connector.store.tables import metadata
from tests.connector.store.audit_chain.test_basis_check import AUDIT_EDITS, SCORE_EDITS
from tests.end_to_end.restored_edits import EDITS, ELSEWHERE
from tests.jobs.integrity.forged_entries import FORGED
from tests.jobs.integrity.graph_edits import GRAPH_EDITS
from tests.jobs.integrity.later_edits import LATER_EDITS
from tests.jobs.integrity.schema_edits import EDITS_BY_ENGINE
from tests.jobs.integrity.sql_edits import SQL_EDITS
from tests.jobs.integrity.test_shadow_tables import EDITS as SHADOW_EDITS
from tests.jobs.retention.test_prune import EDITS as REMOVAL_EDITS

ROOT = Path(ringfence.__file__).parent
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
EDITED = re.compile(r"(?:UPDATE|DELETE FROM|INSERT INTO) (\w+)")
LABEL_OR_TYPE = re.compile(r"[(\[]\w*:(Ringfence\w+|CoverageAudit|EVALUATED|MAY_BE|AUDITS)")


def edited_tables():
    """Tables that some edit of the matrix changes, alone and not as its cover-up."""
    edits = [
        *(statement for statement, _, _ in [*SQL_EDITS.values(), *LATER_EDITS.values()]),
        *(statement for statement, _ in [*SHADOW_EDITS.values(), *REMOVAL_EDITS.values()]),
    ]
    return {table for statement in edits for table in EDITED.findall(statement)}


def open_tables():
    """Tables that the page lists as open, each with its reason."""
    section = PAGE.partition("### Open\n")[2].partition("\n#")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE))


def test_every_table_is_in_the_matrix_or_open():
    tables, in_matrix, left_open = set(metadata.tables), edited_tables(), open_tables()
    assert tables - in_matrix - left_open.keys() == set()
    assert left_open.keys() - tables == set()
    assert left_open.keys() & in_matrix == set()
    assert all(len(reason.split()) > 5 for reason in left_open.values())


def test_a_table_that_is_nowhere_would_be_noticed():
    assert "schedule" not in edited_tables()
    assert "schedule" in open_tables()


LINE = re.compile(r"^\| ([\w' ]+) \| `(\w+\.\w+)` \| (?:`\w+`|any) \|$", re.MULTILINE)
UNCOMPARED = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)
RESTORED = ROOT / "tests" / "end_to_end" / "test_edit_and_restore.py"


def restored_lines():
    """Edits for one verb that are put back: the column of each, by the line's name."""
    tested = {name: f"{line.column.table.name}.{line.column.name}" for name, line in EDITS.items()}
    return tested | ELSEWHERE


def test_every_line_of_an_edit_that_is_put_back_has_its_test():
    text = RESTORED.read_text(encoding="utf-8")
    assert dict(LINE.findall(PAGE)) == restored_lines()
    assert [name for name in ELSEWHERE if f"`{name}`" not in text] == []
    assert 'parametrize("name", EDITS)' in text
    assert "postgresql_later" in text
    assert FORGED.keys() <= EDITS.keys()
    named = PAGE.partition("| edited for one run or audit |")[2].partition("\n\n")[0]
    assert named.count("\n| ") == len(FORGED)


def test_a_line_without_a_test_would_be_noticed():
    page = PAGE + "\n| another | `run.notes` | `score` |\n"
    assert dict(LINE.findall(page)).keys() - restored_lines().keys() == {"another"}


def test_every_table_is_edited_for_one_verb_or_not_compared_for_a_reason():
    section = PAGE.partition("**Not compared before it is used**")[2].partition("\nSo are")[0]
    uncompared = dict(UNCOMPARED.findall(section))
    compared = {column.partition(".")[0] for column in restored_lines().values()}
    compared |= {table for edit in (*SCORE_EDITS, *AUDIT_EDITS) for table in EDITED.findall(edit)}
    assert set(metadata.tables) - compared - uncompared.keys() - open_tables().keys() == set()
    assert uncompared.keys() <= set(metadata.tables) - compared
    assert all(len(reason.split()) > 5 for reason in uncompared.values())


def kinds_in_cypher():
    """Labels and relationship types that our queries name."""
    files = [*(ROOT / "connector" / "neo4j").rglob("*.py"),
             *(ROOT / "migrations" / "cypher").glob("*.cypher")]  # fmt: skip
    return {kind for file in files for kind in LABEL_OR_TYPE.findall(file.read_text())}


def test_every_kind_of_node_and_relationship_is_in_the_matrix():
    kinds = kinds_in_cypher()
    assert {"RingfenceRun", "EVALUATED", "MAY_BE", "AUDITS", "CoverageAudit"} <= kinds
    named = {word for name in GRAPH_EDITS for word in re.findall(r"\w+", name)}
    assert kinds - named == set()
    assert OWN_PROPERTIES.keys() <= kinds


def test_both_engines_have_the_same_edits_of_the_schema_where_they_can():
    assert len(EDITS_BY_ENGINE["sqlite"]) >= 15
    assert len(EDITS_BY_ENGINE["postgresql"]) >= 20
