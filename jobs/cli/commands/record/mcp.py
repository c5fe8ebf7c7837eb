"""`ringfence mcp`: reading tools for agents, over the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from ringfence.jobs.cli.console import print_json
from ringfence.jobs.cli.options import Config


def mcp(
    config: Config = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what an agent's configuration needs, and end.")
    ] = False,
) -> None:
    """Answer an agent's questions on stdin and stdout until it closes them; nothing is written."""
    from ringfence.connector.extras import require_imports
    from ringfence.jobs.config.load import load

    require_imports("mcp", "to answer agents")
    settings = load(config)
    if as_json:
        print_json(_entry(config))
        return
    from ringfence.jobs.mcp.server import run_server

    run_server(settings)


def _entry(config: Config) -> dict[str, object]:
    """Return the server's entry as the clients of the protocol have it in their configuration."""
    import sys
    from pathlib import Path

    words = ["-m", "ringfence", "mcp"]
    words += [] if config is None else ["--config", str(Path(config).absolute())]
    return {"mcpServers": {"ringfence": {"command": sys.executable, "args": words}}}
