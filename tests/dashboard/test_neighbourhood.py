"""The neighbourhood on the Node page: classes in their colours, other labels, opened neighbours."""

from dataclasses import replace

import pytest

from ringfence.jobs.dashboard.html import render
from ringfence.jobs.dashboard.pages.neighbourhood import (
    MAX_OPENED,
    Opened,
    class_colours,
    name_of,
    place_neighbours,
)
from ringfence.jobs.dashboard.pages.node import Around, show_node
from ringfence.jobs.views.explain import explain
from ringfence.jobs.views.explained_neighbours import ExplainedNeighbour
from tests.dashboard.conftest import HOSTILE


def classified(key, class_=None, set_=None):
    return ExplainedNeighbour(key, class_, set_, None, "", "PAID", f"s:{key}")


def device(key):
    return ExplainedNeighbour(key, None, None, None, "Device", "USES", f"s:{key}")


def test_every_neighbour_has_a_place_and_a_node_that_is_met_twice_is_drawn_once():
    near, far = classified("a", "x"), classified("b")
    shared = device("d")
    opened = Opened(name_of(shared), (near, far, classified("self")))
    nodes, lines = place_neighbours([near, shared], [opened], {"x": "c0"}, "s:self", "class=x")
    assert [node["label"] for node in nodes] == ["a", "d", "b"]  # the page's own node is no other
    assert len(lines) == 4
    assert nodes[0]["kind"] == "known c0"
    assert [node["opened"] for node in nodes] == [False, True, False]
    assert nodes[0]["page"] == "/node?key=s%3Aa"
    assert nodes[1]["page"] is None
    assert nodes[1]["opening"] == "/node?key=s%3Aself&list=class%3Dx#around"  # closes it
    assert "open=Device+s%3Ad&open=+s%3Ab" in nodes[2]["opening"]


def test_no_more_neighbours_are_opened_than_the_page_takes():
    around = [device(str(number)) for number in range(8)]
    opened = [Opened(name_of(one), ()) for one in around[:MAX_OPENED]]
    nodes, _ = place_neighbours(around, opened, {}, "s:self")
    assert all(node["opening"].count("open=") <= MAX_OPENED for node in nodes)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_neighbour_of_known_class_is_drawn_in_the_colour_of_its_class(site, visiting, scheme):
    """The computed style: an earlier rule gave every known neighbour one and the same colour."""
    found = explain(site.dashboard.queries, site.key)
    names = sorted({*found.levels, *(bar.class_ for bar in found.p_values)})
    around = tuple(classified(str(place), name) for place, name in enumerate(names))
    around += (classified("set", None, (names[1],)), device(HOSTILE[0]))
    page = show_node(
        replace(found, neighbours=around),
        "x",
        around=Around(around, (), ((HOSTILE[1], HOSTILE[2]),)),
    )
    body = render("node.html", **page, here="/node", project="p", csrf="")
    with visiting(color_scheme=scheme) as seen:
        seen.open(site.url + "/trail")  # for the style sheet
        style = seen.page.evaluate("document.styleSheets[0].href")
        seen.page.set_content(body.replace("/static/ringfence.css", style))
        seen.page.wait_for_function("document.styleSheets.length > 0")
        fills = seen.page.eval_on_selector_all(
            ".picture a circle", "all => all.map(one => getComputedStyle(one).fill)"
        )
        colours = class_colours(names)
        wanted = seen.page.evaluate(
            """names => names.map(name => {
              const dot = document.createElement('i');
              dot.style.color = getComputedStyle(document.documentElement)
                .getPropertyValue('--' + name);
              document.body.append(dot);
              return getComputedStyle(dot).color;
            })""",
            [colours[name] for name in [*names, names[1]]],
        )
        assert fills == wanted
        assert len(set(fills[: len(names)])) == len(names)
        assert seen.page.locator(".picture rect.other").count() == 1
        assert seen.page.evaluate("window.hit") is None
        said = seen.page.inner_text("main")
        assert HOSTILE[1] in said
        assert "Who it is" in said
