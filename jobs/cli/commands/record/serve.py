"""`ringfence serve`: open the dashboard, on this machine or with a token."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from ringfence.jobs.cli.console import print_report, say
from ringfence.jobs.cli.options import AsJson, Configs, EnvironmentFiles


def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; by default the first project's.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")
    ] = None,
    config: Configs = None,
    env_file: EnvironmentFiles = None,
    as_json: AsJson = False,
) -> None:
    """Open the dashboard in a browser on this machine, until Ctrl-C ends it.

    With several --config each project is at /p/NAME/, with a login of its own, and / shows all.
    """
    from ringfence.connector.extras import require_imports
    from ringfence.jobs.config.sources.projects import load_projects
    from ringfence.jobs.dashboard.server import changed, run_servers

    require_imports("serve", "to show the dashboard")
    loaded = load_projects(config or (), env_file or ())
    projects = [changed(settings, host, port) for settings in loaded]

    def print_address(url: str) -> None:
        print_report(describe_addresses(url, [each.project for each in projects]), as_json, say_url)
        sys.stdout.flush()

    run_servers(projects, print_address)


def describe_addresses(url: str, projects: list[str]) -> dict[str, Any]:
    """Return where the dashboard is, and each project if there are several.

    >>> describe_addresses("http://a/", ["x"]), describe_addresses("http://a/", ["x", "y z"])
    ({'url': 'http://a/'}, {'url': 'http://a/', 'projects': {'x': 'http://a/p/x/', \
'y z': 'http://a/p/y%20z/'}})
    """
    from ringfence.jobs.dashboard.address import root_of

    if len(projects) == 1:
        return {"url": url}
    addresses = {name: f"{url.rstrip('/')}{root_of(name)}/" for name in projects}
    return {"url": url, "projects": addresses}


def say_url(addresses: dict[str, Any]) -> None:
    """Show where the dashboard is."""
    say(f"The dashboard is at {addresses['url']}   (Ctrl-C ends it)")
    for name, url in addresses.get("projects", {}).items():
        say(f"  {name}: {url}")
