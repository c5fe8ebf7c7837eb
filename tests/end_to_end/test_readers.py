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
from ringfence.connector.store import predictions
from ringfence.jobs.cli.app import VERBS
from ringfence.jobs.dashboard.pages import PAGES
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.scoring.score import run_scoring
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.schedulers import MAIN, env
from tests.stores import sqlite

READING = {
    "doctor": ("doctor",),
    "models": ("models",),
    "partition": ("partition", "--parts", "2"),
    "status": ("status",),
    "verify": ("verify",),
    "worklist": ("worklist",),
    "explain": ("explain", "KEY", "--why"),
    "report": ("report", "--output", "report.html"),
    "query": ("query", "MATCH (n:Account) RETURN count(n) AS n"),
}
"""By verb, what reads the record or the graph; each is called beside a run."""
LEASED = {
    "score": ("score",),
    "audit": ("audit",),
    "rescore": ("rescore", "KEY", "--reason", "a test"),
    "reconcile": ("reconcile",),
    "train": ("train",),
}
"""Verbs that take the project's lease: beside a run they end with the name of its holder."""
ELSEWHERE = {
    "serve",  # it serves the pages below
    "demo", "sample", "reproduce", "neo4j", "init",  # they have graphs of their own, or none
    "migrate", "rekey", "prune", "promote", "rollback", "advise", "schedule", "mark",
    "key", "mcp", "triage",
}  # fmt: skip
"""Verbs that do not open the mirror, or only within those above."""


COMPUTED = "the graph as it was read up to"
"""What the page of reasons says only if it has opened the mirror."""


def test_every_verb_is_in_one_of_the_lists():
    assert {*READING, *LEASED, *ELSEWHERE} == {*VERBS}


def environment(settings):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RINGFENCE_")}
    patient = {"OMP_NUM_THREADS": "1", "RINGFENCE_SERVE_WHY_SECONDS": str(PATIENCE_SECONDS)}
    return clean | patient | env(settings)


def type_verb(workspace, arguments, key):
    """Type a verb in a process of its own; return its exit code and all that it printed."""
    words = [key if word == "KEY" else word for word in arguments]
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *words, "--json"],
        cwd=workspace.settings.engine.folder.parent,
        env=environment(workspace.settings),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


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
    places = []

    def open_all(port):
        open_pages(port, key, model)
        for verb, arguments in READING.items():
            code, text = type_verb(workspace, arguments, key)
            assert code == 0, (verb, text)

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

        for batch in scored.later:
            scored.arrive(batch)
            with monkeypatch.context() as during:
                during.setattr(fault_points, "reach", places.append if places else reach)
                report = run_scoring(workspace)
            assert report.evaluated == len(batch.nodes)
            assert not [note for note in report.run.notes if "read the whole graph" in note]
    assert places.count("graph read") == places.count("decided") == 2
    assert load_graph(workspace).epoch == epoch


def load_model_name(workspace):
    from ringfence.connector.store.models import active_manifest

    return json.loads(active_manifest(workspace.store, workspace.project))["version"]
