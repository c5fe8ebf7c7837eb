"""The command line, assembled from one module per verb.

A new verb is a module in a folder of `commands` and a line in `VERBS`. Nothing heavy is imported
before a command needs it: a verb imports what it calls when it is called.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Annotated

import typer
from typer.core import TyperGroup

from ringfence import __version__
from ringfence.connector.store.audit_chain.actor import set_verb
from ringfence.jobs.cli.commands.model import advise, models, promote, rollback, train
from ringfence.jobs.cli.commands.record import (
    explain,
    key,
    mark,
    mcp,
    outcomes,
    prune,
    query,
    reconcile,
    rekey,
    report,
    serve,
    triage,
    verify,
    worklist,
)
from ringfence.jobs.cli.commands.runs import audit, rescore, schedule, score, status
from ringfence.jobs.cli.commands.samples import demo, neo4j, reproduce, sample
from ringfence.jobs.cli.commands.setup import doctor, init, migrate, partition
from ringfence.jobs.cli.console import print_error, print_note
from ringfence.jobs.cli.exit_codes import MEANINGS, ExitCode
from ringfence.jobs.config.sources.injected_variables import describe_injected, find_injected

VERBS: dict[str, ModuleType] = {
    "demo": demo,
    "init": init,
    "migrate": migrate,
    "doctor": doctor,
    "train": train,
    "models": models,
    "promote": promote,
    "rollback": rollback,
    "score": score,
    "audit": audit,
    "advise": advise,
    "partition": partition,
    "schedule": schedule,
    "status": status,
    "reconcile": reconcile,
    "verify": verify,
    "prune": prune,
    "rekey": rekey,
    "key": key,
    "rescore": rescore,
    "triage": triage,
    "worklist": worklist,
    "mark": mark,
    "outcomes": outcomes,
    "explain": explain,
    "report": report,
    "serve": serve,
    "query": query,
    "mcp": mcp,
    "reproduce": reproduce,
    "sample": sample,
    "neo4j": neo4j,
}
"""Every verb in the order in which a person meets them; `--help` lists them so."""


class _InOrder(TyperGroup):
    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        del ctx
        return list(VERBS)


app = typer.Typer(
    name="ringfence",
    cls=_InOrder,
    help="For every new node in a Neo4j graph: the classes it could be, with a guaranteed miss "
    "rate and an audit trail.",
    epilog="Exit codes: "
    + "; ".join(f"{code:d} {meaning}" for code, meaning in MEANINGS.items())
    + ".",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _summary(module: ModuleType) -> str:
    """Return a verb's line in `--help`: the first line of its module, after the colon."""
    text = str(module.__doc__).splitlines()[0].partition(": ")[2]
    return text[:1].upper() + text[1:]


for verb, module in VERBS.items():
    if hasattr(module, "app"):  # a verb with verbs of its own
        app.add_typer(module.app, name=verb, short_help=_summary(module))
    else:
        app.command(verb, short_help=_summary(module))(getattr(module, verb))


def main() -> None:
    """Run the command line; `ExitCode` says what a process returns."""
    from ringfence.connector.cores import wait_passively
    from ringfence.connector.errors import RingfenceError
    from ringfence.jobs.cli.next_step_text import complete_commands, config_argument, program_name

    wait_passively()
    try:
        app()
    except RingfenceError as error:
        config = config_argument(sys.argv[1:])
        error.next_step = complete_commands(error.next_step, config, program_name(), list(VERBS))
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
    if names := find_injected(os.environ):
        print_note(describe_injected(names), as_json="--json" in sys.argv)
