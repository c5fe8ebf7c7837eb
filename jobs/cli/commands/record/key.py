"""`ringfence key`: show the public key of audit packs, or make another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.project.signing_keys import PublicKey

app = typer.Typer(
    help="The key that audit packs are signed with.", no_args_is_help=True, rich_markup_mode=None
)


@app.command()
def show(config: Config = None, as_json: AsJson = False) -> None:
    """Print the public key, to give it to whoever will check a pack."""
    from ringfence.jobs.config.load import load
    from ringfence.jobs.project.signing_keys import read_public_key

    print_report(read_public_key(load(config)), as_json, print_key)


@app.command()
def new(config: Config = None, as_json: AsJson = False) -> None:
    """Make a new signing key; what the old one signed stays verifiable."""
    from ringfence.jobs.project.signing_keys import run_new_signing_key

    with open_with_progress(config, "making a signing key") as (workspace, report):
        done = run_new_signing_key(workspace, report)
    print_report(done, as_json, print_key)


def print_key(key: PublicKey) -> None:
    """Show the public key, since when it counts, and where its private half is."""
    say(f"Public key of project {key.project}: {key.public_key}")
    say(key.pem.rstrip())
    before = f", in place of {key.was}" if key.was else ""
    say(f"It counts since entry {key.entry} of the chain, {key.since}{before}.")
    if key.file is None:
        say("Its private half is not on this machine: packs can't be signed here.")
    else:
        say(f"Its private half is in {key.file}. Keep a copy where the database's backups are not.")
