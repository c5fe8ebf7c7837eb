"""The server of `ringfence mcp`: reading tools over stdin and stdout.

It has no tool that writes, and listens on no port: whoever starts the process talks to it. A client
that asks for another tool is told which there are, and that a person types what writes. Errors are
those of the command line, in three parts.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import ContentBlock, ToolAnnotations

from ringfence.connector.errors import RingfenceError
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.mcp import answers, promises
from ringfence.jobs.mcp.answers import Answer
from ringfence.jobs.mcp.untrusted import NOTE, from_graph

INSTRUCTIONS = (
    "ringfence keeps a prediction set for each new node of a Neo4j graph: the classes that it "
    f"could be. {promises.P_VALUE} Each answer begins with its promise: repeat it with the "
    f"numbers. {NOTE} These tools only read."
)
READS = ToolAnnotations(readOnlyHint=True, destructiveHint=False, openWorldHint=False)
MAX_SECONDS = 300.0
USUAL_SECONDS = 30.0


class ReadingServer(FastMCP):
    """A server that answers an unknown tool or argument with those that there are."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any]
    ) -> Sequence[ContentBlock] | dict[str, Any]:
        """Call a tool; refuse what it does not have."""
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            raise ToolError(_refusal(f"there is no tool {name[:80]!r}", sorted(tools)))
        known = tools[name].inputSchema.get("properties", {})
        if unknown := sorted(set(arguments) - set(known)):
            raise ToolError(
                f"the tool {name} has no argument {unknown[0][:80]!r}; "
                f"it has: {', '.join(known) or 'none'}"
            )
        return await super().call_tool(name, arguments)


def _refusal(problem: str, tools: Sequence[str]) -> str:
    return (
        f"{problem}: this server only reads, and nothing can be scored, changed or deleted through "
        f"it. Tools: {', '.join(tools)}. What writes is typed by a person: ringfence --help"
    )


def make_server(settings: Settings) -> ReadingServer:
    """Return the server over a project; it opens stores for each answer and closes them again."""
    server = ReadingServer("ringfence", instructions=INSTRUCTIONS, log_level="ERROR")

    def reading(answer: Callable[..., Answer]) -> Callable[..., Answer]:
        return server.tool(annotations=READS)(answer)

    @reading
    def worklist(
        class_name: str = "",
        limit: int = 20,
        min_p: float | None = None,
        max_size: int | None = None,
        run: int | None = None,
        group: str = "",
        known: str = "no",
        state: str = "open",
    ) -> Answer:
        """List the nodes whose set holds a class, by p-value; without a class, the classes.

        known: is the class known already (no, yes, any). state: open, free, claimed, done, any.
        group: a property and its value, such as region=north. At most 200 nodes.
        """
        given = {"class": class_name, "group": group, "known": known, "state": state}
        numbers = {"min_p": min_p, "max_size": max_size, "run": run}
        given |= {name: str(value) for name, value in numbers.items() if value is not None}
        return _said(lambda: answers.worklist(settings, max(1, limit), given))

    @reading
    def lists(run: int | None = None, pile: str = "", limit: int = 20) -> Answer:
        """Show the lists of a run with their promises, verdicts and nodes; the last by default.

        pile: investigate, clear or open; without it, all. At most 200 nodes.
        """
        return _said(lambda: answers.lists(settings, run, pile, max(1, limit)))

    @reading
    def node(key: str | int) -> Answer:
        """Show one node: its set, p-values, run, class once known, and doubts about the promise."""
        return _said(lambda: answers.node(settings, str(key)))

    @reading
    def why(key: str | int, seconds: float = USUAL_SECONDS) -> Answer:
        """Say what a node's set rests on: p-values without each neighbour, type and column.

        seconds: no step begins after so many, 300 at most.
        """
        limit = min(max(seconds, 1.0), MAX_SECONDS)
        return _said(lambda: answers.why(settings, str(key), limit))

    @reading
    def coverage() -> Answer:
        """Compare promise and coverage: all runs, classes, groups, the audit sample."""
        return _said(lambda: answers.coverage(settings))

    @reading
    def status() -> Answer:
        """Show runs, models, counts, alarms and quarantine, from the audit store alone."""
        return _said(lambda: answers.status(settings))

    @reading
    def verify(full: bool = False) -> Answer:
        """Check the record since its newest checkpoint and a sample of the rest; or in full."""
        return _said(lambda: answers.verify(settings, full))

    @reading
    def schema() -> Answer:
        """Describe the mapped graph and what ringfence adds to it."""
        return _said(lambda: answers.schema(settings))

    return server


def _said(answer: Callable[[], Answer]) -> Answer:
    """Return an answer; an error of ours is told in its three parts, its texts marked."""
    try:
        return answer()
    except RingfenceError as error:
        said = {
            "found": from_graph(error.found),
            "needed": from_graph(error.needed) if error.needed else None,
            "next": error.next_step or None,
            "texts": NOTE,
        }
        raise ToolError(json.dumps(said, ensure_ascii=False)) from None
    except Exception as error:  # noqa: BLE001 - a defect's message may hold values of the graph
        raise ToolError(f"{type(error).__name__}; please report it") from None


def run_server(settings: Settings) -> None:
    """Serve until the client closes stdin; nothing else is written to stdout."""
    logging.getLogger("mcp").setLevel(logging.ERROR)
    make_server(settings).run("stdio")
