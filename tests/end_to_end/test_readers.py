"""Pages and verbs beside a run: they read what the last run saved, and no run reads all again."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

import pytest

from ringfence.connector import fault_points
from ringfence.connector.keys import decode_key
from ringfence.connector.store import predictions
from ringfence.jobs.cli.app import VERBS
from ringfence.jobs.dashboard import api, page_routes, routes
from ringfence.jobs.dashboard.pages import PAGES
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.scoring.score import run_scoring
from tests.jobs.mcp.test_server import ask
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.schedulers import MAIN, env
from tests.stores import sqlite

READING = {
    "advise": ("advise",),
    "key": ("key", "show"),
    "mark": ("mark", "KEY", "claim"),
    "mcp": ("mcp",),
    "prune": ("prune", "--dry-run", "--keep-days", "1"),
    "schedule": ("schedule", "--check"),
    "doctor": ("doctor",),
    "models": ("models",),
    "partition": ("partition", "--parts", "2"),
    "status": ("status",),
    "verify": ("verify",),
    "worklist": ("worklist",),
    "outcomes": ("outcomes",),
    "explain": ("explain", "KEY", "--why"),
    "report": ("report", "--output", "report.html"),
    "query": ("query", "MATCH (n:Account) RETURN count(n) AS n"),
}
"""By verb, what needs no lease: it reads, or writes a row of its own, and ends beside a run."""
REFUSED = {"triage": (("triage",), "no run decided lists")}
"""Verbs that end with words of their own, with or without a run."""
LEASED = {
    "score": ("score",),
    "audit": ("audit",),
    "rescore": ("rescore", "KEY", "--reason", "a test"),
    "reconcile": ("reconcile",),
    "train": ("train",),
    "migrate": ("migrate",),
    "rekey": ("rekey",),
    "prune old": ("prune", "--keep-days", "1"),
    "new key": ("key", "new"),
}
"""What takes the project's lease: beside a run it ends with the name of its holder."""
WAITING = {
    "promote": (("promote", "MODEL", "--reason", "a test"), 0, '"changed": false'),
    "rollback": (("rollback", "--reason", "a test"), 1, "no model version was in use before"),
}
"""Verbs that wait for the run; the exit code that they end with after it, and their words."""
ELSEWHERE = {
    "serve",  # it serves the pages below
    "demo", "sample", "reproduce", "neo4j", "init",  # they have graphs of their own, or none
}  # fmt: skip
"""Verbs that have no project of their own, or read this one through what is above."""


NO_PAGE = {
    "/trail/export", "/marks", "/models/{version}/card/{name}", "/login", "/logout", "/metrics",
    "/healthz", "/readyz", "/favicon.ico",
}  # fmt: skip
COMPUTED = "the graph as it was read up to"
"""What the page of reasons says only if it has opened the mirror."""


def test_every_verb_is_in_one_of_the_lists():
    run = [*READING.values(), *LEASED.values(), *(words for words, *_ in WAITING.values())]
    run += [words for words, _ in REFUSED.values()]
    assert {words[0] for words in run} | ELSEWHERE == {*VERBS}
    assert not {words[0] for words in run} & ELSEWHERE


def test_every_address_is_a_page_or_shows_nothing_of_the_mirror():
    """Those that are no page are downloads, answers for programs, files and the login."""
    routers = page_routes.router, routes.router, api.router
    every = {route.path for router in routers for route in router.routes}
    pages = {page.address for page in PAGES}
    assert {route.path for route in page_routes.router.routes} == pages
    assert [page.address for page in PAGES if "{" in page.address.format(seq=1, version="a")] == []
    kinds = ("/api/v1/", "/csv/", "/static/")
    assert {path for path in every - pages if not path.startswith(kinds)} == NO_PAGE


def environment(settings):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RINGFENCE_")}
    patient = {"OMP_NUM_THREADS": "1", "RINGFENCE_SERVE_WHY_SECONDS": str(PATIENCE_SECONDS)}
    return clean | patient | env(settings)


def type_verb(workspace, arguments, key):
    """Type a verb in a process of its own; return its exit code and all that it printed."""
    if arguments == ("mcp",):
        return ask_agent_server(workspace)
    with started(workspace, arguments, key) as process:
        text, _ = process.communicate()
    return process.returncode, text


def started(workspace, arguments, key="", model=""):
    """Type a verb and go on; it reads nothing from a terminal."""
    named = {"KEY": key, "MODEL": model}
    words = [named.get(word, word) for word in arguments]
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *words, "--json"],
        cwd=workspace.settings.engine.folder.parent,
        env=environment(workspace.settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ask_agent_server(workspace):
    """Let an agent's server answer why a node has its set, from the mirror."""
    key = decode_key(min(predictions.evaluated_keys(workspace.store, workspace.project)))
    asked = [("why", {"key": str(key), "seconds": PATIENCE_SECONDS}), ("status", {})]
    _, _, answers = ask(workspace.settings.engine.folder.parent, workspace.settings, asked)
    text = json.dumps([[part.text for part in answer.content] for answer in answers])
    assert "there is no mirror" not in text
    return int(any(answer.isError for answer in answers)), text


@contextmanager
def dashboard(workspace):
    """A dashboard in a process of its own that never collects garbage: what it opens stays open."""
    code = f"import gc; gc.disable(); {MAIN}"
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0", "--json"],
        cwd=workspace.settings.engine.folder.parent,
        env=environment(workspace.settings),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            text = ""
            while not text.rstrip().endswith("}"):
                text += process.stdout.readline()
            yield urlsplit(json.loads(text)["url"]).port
        finally:
            process.terminate()


def open_pages(port, key, model):
    """Open every page that has its address in the navigation, and those of a run, model, node."""
    asked = {"/node": f"?key={quote(key)}", "/why": f"?key={quote(key)}"}
    asked["/runs/compare"] = "?a=1&b=1"
    for page in PAGES:
        path = page.address.replace("{seq}", "1").replace("{version}", quote(model))
        assert "there is no mirror" not in open_page(port, path + asked.get(path, ""))
    # a busy server may take longer than a page waits for it
    wait_until(lambda: COMPUTED in open_page(port, "/why" + asked["/why"]), "an answer")


def open_page(port, address):
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    connection.request("GET", address)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert answer.status == 200, (address, body)
    return body


@pytest.mark.long
@sqlite
def test_no_page_and_no_verb_makes_a_run_read_the_whole_graph(scored, monkeypatch):
    """Pages are opened before a run; all is opened in the middle of it, and stays open."""
    workspace = scored.workspace
    key = min(predictions.evaluated_keys(workspace.store, workspace.project))
    model = load_model_name(workspace)
    epoch = load_graph(workspace).epoch
    places, waiting = [], {}

    def open_all(port):
        open_pages(port, key, model)
        for verb, arguments in READING.items():
            code, text = type_verb(workspace, arguments, key)
            assert code == 0, (verb, text)
        for verb, (arguments, refusal) in REFUSED.items():
            code, text = type_verb(workspace, arguments, key)
            assert (code, refusal in text) == (1, True), (verb, text)

    with dashboard(workspace) as port:
        open_pages(port, key, model)

        def reach(name):
            places.append(name)
            if name == "graph read":
                open_all(port)
            if name == "decided":
                for verb, arguments in LEASED.items():
                    code, text = type_verb(workspace, arguments, key)
                    assert (code, str(os.getpid()) in text) == (1, True), (verb, text)
                waiting.update(
                    (verb, started(workspace, arguments, key, model))
                    for verb, (arguments, *_) in WAITING.items()
                )

        for batch in scored.later:
            scored.arrive(batch)
            with monkeypatch.context() as during:
                during.setattr(fault_points, "reach", places.append if places else reach)
                report = run_scoring(workspace)
            assert report.evaluated == len(batch.nodes)
            assert not [note for note in report.run.notes if "read the whole graph" in note]
            for verb, process in waiting.items():
                with process:
                    text, _ = process.communicate()
                _, expected, said = WAITING[verb]
                assert (process.returncode, said in text) == (expected, True), (verb, text)
            waiting.clear()
    assert places.count("graph read") == places.count("decided") == 2
    assert load_graph(workspace).epoch == epoch


def load_model_name(workspace):
    from ringfence.connector.store.models import active_manifest

    return json.loads(active_manifest(workspace.store, workspace.project))["version"]
