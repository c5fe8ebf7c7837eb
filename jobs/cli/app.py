"""The command line, assembled from one module per verb.

A new verb is a module in `commands` and a line in `VERBS`. Nothing heavy is imported before a
command needs it: a verb imports what it calls when it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer
from typer.core import TyperGroup

from ringfence import __version__
from ringfence.connector.store.trail.actor import set_verb
from ringfence.jobs.cli import commands
from ringfence.jobs.cli.commands import (
    advise,
    audit,
    demo,
    doctor,
    explain,
    init,
    migrate,
    neo4j,
    query,
    reconcile,
    rekey,
    report,
    reproduce,
    rescore,
    sample,
    schedule,
    score,
    serve,
    status,
    train,
    verify,
)
from ringfence.jobs.cli.exit_codes import MEANINGS, ExitCode

VERBS: dict[str, Callable[..., None] | typer.Typer] = {
    "demo": demo.demo,
    "init": init.init,
    "doctor": doctor.doctor,
    "migrate": migrate.migrate,
    "train": train.train,
    "score": score.score,
    "audit": audit.audit,
    "advise": advise.advise,
    "schedule": schedule.schedule,
    "status": status.status,
    "reconcile": reconcile.reconcile,
    "verify": verify.verify,
    "rekey": rekey.rekey,
    "rescore": rescore.rescore,
    "explain": explain.explain,
    "report": report.report,
    "serve": serve.serve,
    "query": query.query,
    "reproduce": reproduce.reproduce,
    "sample": sample.sample,
    "neo4j": neo4j.app,
}
"""Every verb in the order in which a person meets them; `--help` lists them so."""


class _InOrder(TyperGroup):
    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        del ctx
        return list(VERBS)


app = typer.Typer(
    name="ringfence",
    cls=_InOrder,
    help="Prediction sets of known strength for every new node in a Neo4j graph, with an audit.",
    epilog="Exit codes: "
    + "; ".join(f"{code:d} {meaning}" for code, meaning in MEANINGS.items())
    + ".",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _summary(verb: str) -> str:
    """Return a verb's line in `--help`: the first line of its module, after the colon."""
    first_line = str(sys.modules[f"{commands.__name__}.{verb}"].__doc__).splitlines()[0]
    text = first_line.partition(": ")[2]
    return text[:1].upper() + text[1:]


for name, verb in VERBS.items():
    if isinstance(verb, typer.Typer):
        app.add_typer(verb, name=name, short_help=_summary(name))
    else:
        app.command(name, short_help=_summary(name))(verb)


def main() -> None:
    """Run the command line; `ExitCode` says what a process returns."""
    from ringfence.connector.errors import RingfenceError
    from ringfence.jobs.cli.console import print_error
    from ringfence.jobs.cli.pasteable import config_argument, pasteable, program_name

    try:
        app()
    except RingfenceError as error:
        config = config_argument(sys.argv[1:])
        error.next_step = pasteable(error.next_step, config, program_name(), list(VERBS))
        print_error(error, as_json="--json" in sys.argv)
        sys.exit(ExitCode.ERROR)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ringfence {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    del version
    set_verb(context.invoked_subcommand or "ringfence")
