"""The worklist in a browser: a class in two clicks, pages, CSV, marks and who may make them."""

import csv
import io
import re
from urllib.parse import quote, urlencode

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.audit_chain.integrity import record_snapshot
from ringfence.connector.store.queries.worklist import WorklistFilter, whole_worklist
from ringfence.jobs.dashboard.security import guard_of
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.samples.audit_store import Plan
from tests.dashboard.conftest import TOKEN, open_site, settings_at

VIEWER = "a second token for viewers"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A dashboard with a token for operators, one for viewers, and a proxy that names users."""
    serve = {"token": TOKEN, "viewer_token": VIEWER, "user_header": "X-Forwarded-User"}
    settings = settings_at(tmp_path_factory.mktemp("shared"), serve=serve)
    with open_site(settings, Plan(runs=3, per_run=80)) as opened:
        yield opened


def test_which_accounts_may_be_mules_surest_first_takes_two_clicks(locked, shared, visiting):
    with visiting(extra_http_headers={"Authorization": f"Bearer {VIEWER}"}) as seen:
        seen.open(shared.url + "/")
        seen.page.click("nav >> text=Worklist")
        seen.page.wait_for_url("**/worklist")
        seen.page.click("main >> text=mule")
        seen.page.wait_for_url("**/worklist?*class=mule*")
        rows = seen.page.locator("tbody tr").all_inner_texts()
        p = [float(row.strip().split("\t")[1]) for row in rows]
        assert p == sorted(p, reverse=True)
        assert len(p) > 10
        first = seen.page.locator("tbody a").first.inner_text()
        seen.page.locator("tbody a").first.click()
        seen.page.wait_for_url("**/node?*")
        assert seen.page.inner_text("h1") == f"Node {first}"
        assert "mule" in seen.page.inner_text(".verdict")
        assert seen.problems == []


def test_pages_and_the_csv_hold_every_node_once_and_in_order(site):
    class_ = site.plan.classes[0]
    whole = list(whole_worklist(site.dashboard.queries, WorklistFilter(class_, known="any")))
    assert len(whole) > 60
    address, keys = f"/worklist?known=any&class={quote(class_)}", []
    while address:
        body = site.ask(address).body.decode()
        keys += re.findall(r'<th scope="row"><a href="/node\?key=([^"&]+)&amp;list=', body)
        more = re.search(r'class="button" href="([^"]+)">Next', body)
        address = more and more[1].replace("&amp;", "&")
    assert keys == [quote(node.node_key, safe="/") for node in whole]
    answer = site.ask(f"/csv/worklist?known=any&class={quote(class_)}")
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert [float(row["p"]) for row in rows] == [node.p for node in whole]
    assert answer.headers["Content-Disposition"] == 'attachment; filename="worklist.csv"'


def test_filters_that_can_t_be_read_are_named(site):
    for wrong in (
        "min_p=x",
        "run=-1",
        "known=perhaps",
        "from=yesterday",
        "after=x",
        "until=9999-12-31",
        "run=99999999999999999999999",
    ):
        answer = site.ask(f"/worklist?class=mule&{wrong}")
        assert answer.status == 400, wrong
        assert b"needed" in answer.body
    assert site.ask("/worklist?class=&min_p=").status == 200


def mark(shared, token, csrf=None, **form):
    bearer = {"Authorization": f"Bearer {token}"}
    page = shared.ask("/node?key=" + quote("account 2-7"), **bearer)
    cookie = page.headers["Set-Cookie"].split(";")[0]
    own = re.search(r'name="csrf" value="(\w+)"', page.body.decode())[1]
    kind = {"Content_Type": "application/x-www-form-urlencoded", "Cookie": cookie}

    fields = {
        "key": "s:account 2-7",
        "csrf": own if csrf is None else csrf,
        "action": "claim",
    } | form
    headers = kind | bearer | {"X_Forwarded_User": "anna"}
    return shared.ask("/marks", "POST", urlencode(fields), **headers)


def test_an_operator_marks_a_node_under_the_proxy_s_name_and_the_chain_has_it(shared):
    queries = shared.dashboard.queries
    before, verdict = queries.chain_length(), queries.total()
    assert mark(shared, TOKEN, who="somebody else").status == 303
    assert mark(shared, TOKEN, action="note", note="<b>seen</b> it").status == 303
    body = shared.ask(shared.node_path, Authorization=f"Bearer {VIEWER}").body.decode()
    assert "<strong>anna</strong>: claim" in body
    assert "somebody else" not in body
    assert "&lt;b&gt;seen&lt;/b&gt; it" in body
    assert 'action="/marks"' not in body  # a viewer's page has no form
    assert queries.chain_length() == before + 2
    assert queries.total() == verdict
    assert (
        "anna: claim of node s:account 2-7"
        in shared.ask("/trail", Authorization=f"Bearer {VIEWER}").body.decode()
    )
    with record_snapshot(
        queries.store, queries.project, key_source(shared.dashboard.settings)
    ) as reader:
        assert list(find_edits(reader, reader.record())) == []


def test_marks_need_an_operator_an_own_form_an_evaluated_node_and_an_action(shared):
    before = shared.dashboard.queries.chain_length()
    assert mark(shared, VIEWER).status == 403
    assert mark(shared, TOKEN, csrf="0" * 64).status == 403
    assert mark(shared, TOKEN, key="s:nobody").status == 400
    assert mark(shared, TOKEN, action="burn").status == 400
    assert mark(shared, TOKEN, action="note", note=" ").status == 400
    assert shared.dashboard.queries.chain_length() == before


def test_a_done_node_leaves_the_list_until_it_is_reopened(shared):
    queries = shared.dashboard.queries
    wanted = WorklistFilter("mule", known="any")
    node = next(whole_worklist(queries, wanted))
    mark(shared, TOKEN, key=node.node_key, action="done")
    assert next(whole_worklist(queries, wanted)).node_key != node.node_key
    done = list(whole_worklist(queries, WorklistFilter("mule", known="any", state="done")))
    assert [(one.node_key, one.state, one.who) for one in done] == [(node.node_key, "done", "anna")]
    mark(shared, TOKEN, key=node.node_key, action="reopen")
    assert next(whole_worklist(queries, wanted)).node_key == node.node_key


def test_a_viewer_s_token_needs_an_operator_s_beside_it(tmp_path):
    for serve in ({"viewer_token": VIEWER}, {"viewer_token": VIEWER, "token": VIEWER}):
        with pytest.raises(ConfigError, match="two different tokens"):
            guard_of(settings_at(tmp_path, serve=serve))
