"""`ringfence serve`: open the dashboard, on this machine or with a token."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ringfence.jobs.cli.console import print_report, say
from ringfence.jobs.cli.options import AsJson, Config


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Open the dashboard in a browser on this machine, until Ctrl-C ends it."""
    from ringfence.connector.extras import require_imports
    from ringfence.jobs.config.load import load
    from ringfence.jobs.dashboard.server import changed, run_server

    require_imports("serve", "to show the dashboard")

    def print_address(url: str) -> None:
        print_report({"url": url}, as_json, print_url)
        sys.stdout.flush()

    run_server(changed(load(config), host, port), print_address)


def print_url(address: dict[str, str]) -> None:
    """Show where the dashboard is."""
    say(f"The dashboard is at {address['url']}   (Ctrl-C ends it)")
