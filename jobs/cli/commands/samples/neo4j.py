"""`ringfence neo4j`: start, stop or inspect the embedded server."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.connector.json_types import JsonObject
from ringfence.jobs.cli.next_step_text import as_typed
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.connector.neo4j.embedded import ServerInfo, ServerStatus

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The embedded Neo4j: a real server on this machine, with nothing to install.",
)

Data = Annotated[
    Path | None,
    typer.Option("--data", help="The server's data folder; by default the configuration's own."),
]
ShowPassword = Annotated[bool, typer.Option("--show-password", help="Print the password too.")]


@app.command()
def start(
    data: Data = None,
    config: Config = None,
    heap: Annotated[str, typer.Option(help="Memory for queries, like 512m or 2g.")] = "512m",
    page_cache: Annotated[str, typer.Option(help="Memory for the graph's pages.")] = "128m",
    port: Annotated[int, typer.Option(help="Bolt port; 0 takes the last one, or a free one.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Start the server in the background, or find the one that runs; it runs until `stop`."""
    from ringfence.connector.neo4j import embedded
    from ringfence.jobs.cli.progress import server_progress, show_progress

    options = embedded.ServerOptions(heap=heap, page_cache=page_cache, port=port, quick=False)
    folder = _folder(data, config)
    with show_progress("starting Neo4j") as report:
        server = embedded.start(folder, options=options, progress=server_progress(report))
    _print(_facts(server), as_json, "running")


@app.command()
def stop(data: Data = None, config: Config = None, as_json: AsJson = False) -> None:
    """Close the server; its data stays."""
    from ringfence.connector.neo4j import embedded

    folder = _folder(data, config)
    stopped = embedded.stop(folder)
    if as_json:
        typer.echo(json.dumps({"stopped": stopped, "data_dir": str(folder.absolute())}))
    else:
        typer.echo("stopped" if stopped else f"no server runs on {folder}")


@app.command()
def status(
    data: Data = None,
    config: Config = None,
    show_password: ShowPassword = False,
    as_json: AsJson = False,
) -> None:
    """Say whether the server runs (running, starting, stale or stopped), where, and since when."""
    from ringfence.connector.neo4j import embedded

    current = embedded.status(_folder(data, config))
    facts = _facts(current.server, show_password) if current.server else _bare_facts(current)
    _print(facts, as_json, current.state)


def _folder(data: Path | None, config: Path | None) -> Path:
    """Return the data folder that was asked for, or the one of the file or the environment.

    Verbs of a project start and find its server there: another folder would be another, empty one.
    """
    if data is not None:
        return data
    from ringfence.jobs.config.load import DEFAULT_FILE, describes_graph, load, variable
    from ringfence.jobs.config.sources.server import DEFAULT_FOLDER, EMBEDDED_FOLDER

    named = config is not None or "RINGFENCE_CONFIG" in os.environ
    if named or Path(DEFAULT_FILE).exists() or describes_graph(os.environ):
        return load(config).engine.folder / EMBEDDED_FOLDER
    return Path(os.environ.get(variable("engine", "folder"), DEFAULT_FOLDER)) / EMBEDDED_FOLDER


def _facts(server: ServerInfo, show_password: bool = False) -> JsonObject:
    secret = {"password": server.password} if show_password else {}
    return {
        "uri": server.uri,
        "user": server.user,
        **secret,
        "credentials": str(server.credentials),
        "version": server.version,
        "pid": server.pid,
        "port": server.port,
        "uptime_seconds": round(time.time() - server.started_at, 1),
        "data_dir": str(server.data_dir),
        "log": str(server.log),
    }


def _bare_facts(current: ServerStatus) -> JsonObject:
    return {"data_dir": str(current.data_dir), "log": str(current.log)}


HINTS = {
    "running": "read the login into a shell:  set -a; . {credentials}; set +a",
    "starting": "it is starting or closing: ask again in some seconds",
    "stale": "it ended without closing; `ringfence neo4j start` recovers its data",
    "stopped": "start it with `ringfence neo4j start`",
}


def _print(facts: JsonObject, as_json: bool, state: str) -> None:
    if as_json:
        typer.echo(json.dumps({"state": state, **facts}))
        return
    typer.echo(f"Neo4j is {state}")
    for name, value in facts.items():
        typer.echo(f"  {name.replace('_', ' '):15} {value}")
    typer.echo(as_typed(HINTS[state].format(**facts)))
