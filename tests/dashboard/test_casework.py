"""Working through a list: how good it is, outcomes of several nodes, the next case, a name."""

import csv
import json
import re
from dataclasses import replace
from html import unescape
from urllib.parse import urlencode

import pytest
from sqlalchemy import text

from ringfence.connector.records import UNSETTLED
from ringfence.connector.store.queries import worklist_counts
from ringfence.connector.store.queries.worklist import (
    WorklistFilter,
    beside_on_list,
    count_worklist,
    whole_worklist,
)
from ringfence.connector.store.queries.worklist_counts import known_outcomes
from ringfence.connector.store.worklist.marks import read_marks
from ringfence.jobs.dashboard.pages.worklist_place import node_address, own_address
from ringfence.jobs.samples.audit_store import Plan
from ringfence.jobs.worklist import table
from tests.dashboard.conftest import TOKEN, open_site, settings_at

OPEN = WorklistFilter("mule")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A dashboard that anyone on this machine may mark nodes on."""
    settings = settings_at(tmp_path_factory.mktemp("desk"))
    with open_site(settings, Plan(runs=4, per_run=70, known_runs=3)) as opened:
        yield opened


def keys_of(site):
    return [node.node_key for node in whole_worklist(site.dashboard.queries, OPEN)]


def form_of(site):
    """The cookie and the token of a form, as a browser has them."""
    answer = site.ask("/worklist?class=mule")
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    return cookie, re.search(r'name="csrf" value="([0-9a-f]+)"', answer.body.decode())[1]


def send(site, fields):
    cookie, csrf = form_of(site)
    kind = {"Content_Type": "application/x-www-form-urlencoded", "Cookie": cookie}
    return site.ask("/marks", "POST", urlencode([("csrf", csrf), *fields]), **kind)


def marks_of(site, key):
    store = site.dashboard.store
    with store.reading() as connection:
        return read_marks(connection, site.dashboard.settings.project, key)


def test_a_list_says_how_long_it_is_how_much_was_right_and_what_it_missed(desk, monkeypatch):
    queries = desk.dashboard.queries
    assert count_worklist(queries, OPEN, 10_000) == len(keys_of(desk))
    assert count_worklist(queries, OPEN, 3) == 3
    rows = queries.rows(text("SELECT label, classes, seq FROM prediction WHERE label IS NOT NULL"))
    listed = [row for row in rows if '"mule"' in row["classes"]]
    right = [row for row in listed if row["label"] == "mule"]
    of_class = [row for row in rows if row["label"] == "mule"]
    found = known_outcomes(queries, "mule")
    assert (found.listed, found.right, found.of_class) == (len(listed), len(right), len(of_class))
    assert 0 < found.right < found.listed
    page = desk.ask("/worklist?class=mule").body.decode()
    assert f"{found.right:,} of {found.listed:,} whose set held the class" in page
    monkeypatch.setattr(worklist_counts, "MAX_COUNTED_NODES", 150)  # two runs of 70
    newest = known_outcomes(queries, "mule")
    assert newest.runs == 2
    assert newest.listed == sum(row["seq"] >= 3 for row in listed)


@pytest.fixture
def unsettled(tmp_path):
    """Two runs with an audit sample; of the second only the classes of some nodes are known."""
    settings = settings_at(tmp_path, audit={"sample_nodes": 40})
    with open_site(settings, Plan(runs=2, per_run=120, known=0.6)) as opened:
        yield opened


def wait_for_classes(site, seq):
    """Say of a run what an audit says while only a choice of its classes is known."""
    with site.dashboard.store.transaction() as connection:
        rows = text("UPDATE coverage SET raised_by = :why WHERE slice = 'run' AND seq = :seq")
        connection.execute(rows, {"why": UNSETTLED, "seq": seq})


def test_figures_above_a_list_are_of_settled_runs_else_of_the_sample(unsettled):
    queries = unsettled.dashboard.queries
    rows = queries.rows(
        text("SELECT label, classes, seq, sampled FROM prediction WHERE label IS NOT NULL")
    )

    def expected(keeps):
        listed = [row for row in rows if keeps(row) and '"mule"' in row["classes"]]
        return len(listed), sum(row["label"] == "mule" for row in listed)

    def counted():
        found = known_outcomes(queries, "mule")
        return found.runs, found.in_sample, (found.listed, found.right)

    assert counted() == (2, False, expected(lambda row: True))
    wait_for_classes(unsettled, 2)
    assert counted() == (1, False, expected(lambda row: row["seq"] == 1))
    wait_for_classes(unsettled, 1)
    assert counted() == (2, True, expected(lambda row: row["sampled"]))
    page = unsettled.ask("/worklist?class=mule&known=any").body.decode()
    assert "in the audit sample, in the newest 2 runs: no run is settled" in page


def test_a_run_that_waits_between_settled_ones_is_left_out(desk):
    queries = desk.dashboard.queries
    whole = known_outcomes(queries, "mule")
    of_second = queries.scalar(
        text("SELECT count(*) FROM prediction WHERE seq = 2 AND label = 'mule'")
    )
    wait_for_classes(desk, 2)
    without = known_outcomes(queries, "mule")
    with desk.dashboard.store.transaction() as connection:
        connection.execute(text("UPDATE coverage SET raised_by = '' WHERE slice = 'run'"))
    assert without.runs == whole.runs - 1
    assert without.of_class == whole.of_class - of_second


def test_the_json_link_has_the_nodes_of_the_page_with_their_filters(desk):
    page = unescape(desk.ask("/worklist?class=mule&max_size=2&show=features").body.decode())
    link = re.search(r'class="csv" href="(/api/v1/worklist[^"]+)"', page)[1]
    assert "show" not in link  # columns of the graph are not the API's
    answer = json.loads(desk.ask(link).body)
    wanted = replace(OPEN, max_size=2)
    nodes = [node.key for node in whole_worklist(desk.dashboard.queries, wanted)]
    assert [node["node"] for node in answer["nodes"]] == nodes
    assert {"outcome", "note"} <= set(answer["nodes"][0])


def test_a_csv_with_columns_of_a_graph_that_is_silent_is_refused(desk):
    """A file whose columns are empty would look as if the nodes had no such properties."""
    page = unescape(desk.ask("/worklist?class=mule&show=features").body.decode())
    link = re.search(r'class="csv" href="(/csv/worklist[^"]+)"', page)[1]
    assert link.endswith("show=features")
    answer = desk.ask(link)
    assert answer.status == 503
    assert b"the graph gave no answer" in answer.body
    assert desk.ask(link.replace("&show=features", "")).status == 200


def test_a_csv_has_the_columns_that_the_page_shows(desk, monkeypatch):
    given = {}

    def answer(dashboard, nodes, names):
        given[len(nodes)] = names
        return {node.node_key: [f"={node.key}", None] for node in nodes}

    monkeypatch.setattr(table, "NODES_PER_QUESTION", 7)
    nodes = list(whole_worklist(desk.dashboard.queries, OPEN))
    lines = table.csv_lines(
        desk.dashboard.queries, OPEN, ["balance", "=x"], lambda rows, names: answer(0, rows, names)
    )
    rows = list(csv.reader(lines))
    assert rows[0][-2:] == ["balance", "'=x"]
    assert [row[-2:] for row in rows[1:]] == [[f"'={node.key}", ""] for node in nodes]
    assert max(given) == 7


def test_the_case_before_and_after_are_those_of_the_list(desk):
    whole = list(whole_worklist(desk.dashboard.queries, OPEN))
    beside = [beside_on_list(desk.dashboard.queries, OPEN, n.place) for n in whole]
    keys = [node.node_key for node in whole]
    assert [before for before, _ in beside] == [None, *keys[:-1]]
    assert [after for _, after in beside] == [*keys[1:], None]


def test_several_nodes_get_an_outcome_in_one_step_and_the_name_is_remembered(desk):
    chosen, name = keys_of(desk)[:3], "Ann <b>Ä"
    back = "/worklist?class=mule&known=no"
    answer = send(desk, [*(("key", key) for key in chosen), ("action", "false alarm"),
                         ("who", name), ("note", "a shop"), ("about", "mule"),
                         ("back", back)])  # fmt: skip
    assert (answer.status, answer.headers["Location"]) == (303, back)
    for key in chosen:
        (mark,) = marks_of(desk, key)
        assert (mark.who, mark.action, mark.outcome) == (name, "done", "false alarm")
        assert (mark.about, mark.note) == ("mule", "a shop")
    assert not set(chosen) & set(keys_of(desk))
    cookies = "; ".join(value.partition(";")[0] for value in answer.headers.get_all("Set-Cookie"))
    page = desk.ask("/worklist?class=mule", Cookie=cookies).body.decode()
    assert name in unescape(re.search(r'name="who" value="([^"]*)"', page)[1])
    assert "<b>" not in page.partition("<main")[2].replace("<b>x", "")
    lines = desk.ask("/csv/worklist?class=mule&state=false+alarm").body.decode()
    assert lines.count("false alarm") == 3
    assert "a shop" in lines


def test_one_wrong_key_among_several_marks_none(desk):
    key = keys_of(desk)[0]
    fields = [("key", key), ("key", "s:nobody"), ("action", "claim"), ("who", "Ann")]
    assert send(desk, fields).status == 400
    assert marks_of(desk, key) == []
    assert send(desk, [("action", "claim"), ("who", "Ann")]).status == 400


def test_a_case_is_assigned_and_found_under_the_assignee(desk):
    key = keys_of(desk)[1]
    send(desk, [("key", key), ("action", "claim"), ("who", "Ann"), ("assignee", "Bob")])
    assert marks_of(desk, key)[-1].assignee == "Bob"
    page = desk.ask("/worklist?class=mule&by=Bob").body.decode()
    assert page.count('<input type="checkbox" name="key"') == 1
    assert "Bob" in page


@pytest.mark.parametrize(
    "elsewhere",
    ["https://elsewhere.org/", "//elsewhere.org/worklist?", "/logout", "/worklist?\r\nX: y",
     "/\\elsewhere.org/worklist?", "/worklist?" + "x" * 3_000],
)  # fmt: skip
def test_a_form_leads_to_no_other_page(elsewhere):
    assert own_address(elsewhere, "/") == "/"
    assert own_address("/node?key=a", "/") == "/node?key=a"


def test_a_person_goes_through_cases_by_keyboard_and_by_outcome(desk, visiting):
    keys = keys_of(desk)
    with visiting() as seen:
        seen.open(desk.url + "/worklist?class=mule")
        seen.page.locator("tbody a").first.click()
        seen.page.wait_for_url("**/node?*list=*")
        assert seen.page.locator("a[rel=prev]").count() == 0
        seen.page.keyboard.press("Alt+n")
        seen.page.wait_for_url(f"{desk.url}{node_address(keys[1], 'class=mule')}")
        seen.page.keyboard.press("Alt+p")
        seen.page.wait_for_url(f"{desk.url}{node_address(keys[0], 'class=mule')}")
        seen.page.fill("input[name=who]", "Ann")
        seen.page.click("button[value=confirmed]")
        seen.page.wait_for_url(f"{desk.url}{node_address(keys[1], 'class=mule')}")
        assert seen.page.input_value("input[name=who]") == "Ann"
        assert seen.problems == []
    assert marks_of(desk, keys[0])[-1].outcome == "confirmed"
    assert marks_of(desk, keys[0])[-1].about == "mule"


def test_one_box_chooses_all_of_a_page(desk, visiting):
    with visiting() as seen:
        seen.open(desk.url + "/worklist?class=mule")
        seen.page.check("input[data-all]")
        boxes = seen.page.locator("input[name=key][type=checkbox]")
        assert boxes.count() == seen.page.locator("input[name=key][type=checkbox]:checked").count()
        assert boxes.count() > 3


def test_columns_that_the_graph_does_not_give_in_time_are_said_to_be_empty(desk):
    page = desk.ask("/worklist?class=mule&show=features&show=no_such&show=%60").body.decode()
    assert "its columns are empty" in page
    assert '<th scope="col">features</th>' in page
    assert "no_such" not in page


@pytest.mark.parametrize("listed", ["class=nothing", "class=mule&min_p=x", "%00", "x" * 900, "a"])
def test_a_list_that_cannot_be_read_gives_a_page_without_one(desk, listed):
    answer = desk.ask(f"{desk.node_path}&{urlencode({'list': listed})}")
    assert answer.status in (200, 400)
    assert "Next case" not in answer.body.decode()


def test_a_viewer_sees_no_boxes(tmp_path):
    viewer = "a second token for viewers"
    serve = {"token": TOKEN, "viewer_token": viewer}
    with open_site(settings_at(tmp_path, serve=serve), Plan(runs=1, per_run=30)) as site:
        for token, boxes in ((viewer, False), (TOKEN, True)):
            page = site.ask("/worklist?class=mule&known=any", Authorization=f"Bearer {token}")
            assert ('name="key"' in page.body.decode().partition("<table")[2]) == boxes
