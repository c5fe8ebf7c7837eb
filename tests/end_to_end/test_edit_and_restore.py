"""A row that is edited for one run and then put back: the verb refuses to rest on it."""

from dataclasses import replace

import pytest
from sqlalchemy import delete, select

from ringfence.connector import fault_points
from ringfence.connector.errors import StoreError
from ringfence.connector.store import tables
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.promotion import run_promotion
from ringfence.jobs.lifecycle.versions import read_versions
from ringfence.jobs.scoring.score import run_scoring
from tests.end_to_end.restored_edits import EDITS, answered, configured, edit, go_on, zeros
from tests.project_copies import Stage, load_first, sample_parts, starts_from
from tests.stores import postgresql_later

pytestmark = [pytest.mark.slow, postgresql_later]


def refuse(verb, *given, **named):
    """Run a verb that has to refuse; return in which words."""
    with pytest.raises(StoreError) as refused:
        verb(*given, **named)
    assert refused.value.next_step == "ringfence verify"
    return str(refused.value)


def require_sound(workspace):
    assert run_verification(workspace).problems == ()


@answered
@pytest.mark.parametrize("name", EDITS)
def test_no_verb_rests_on_a_row_that_is_edited_and_put_back(workspace, sample, name):
    line = EDITS[name]
    line.before(workspace, sample)
    put_back = edit(workspace, line.column, line.change)
    refuse(line.verb, workspace)
    put_back()
    require_sound(workspace)
    line.verb(workspace)  # the control: as it was, the record is taken
    require_sound(workspace)
