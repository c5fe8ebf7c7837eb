"""Work in a process of its own: it may load torch and take long, and ends with the scheduler.

The function is found by its names in the child, so that nothing of it is loaded here. Its arguments
go through a pipe, so that no secret among them stands in an environment or on a command line.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from ringfence.connector.errors import LeaseHeld, LeaseLost, describe_error
from ringfence.connector.progress import Progress
from ringfence.connector.store.schedule import Ended

ASK_SECONDS = 0.5
END_SECONDS = 10.0


def run_in_child(
    module: str,
    function: str,
    arguments: tuple[Any, ...],
    progress: Progress,
) -> Ended:
    """Run a function that returns a sentence in a child process; return how it ended.

    `progress` is called while it works, and may raise: the child is ended then.
    """
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(theirs, module, function, arguments), daemon=True)
    child.start()
    theirs.close()
    outcome: tuple[str, str] | None = None
    try:
        while not mine.poll(ASK_SECONDS):
            progress("working in a process of its own", 0, 0)
        outcome = mine.recv()
    except EOFError:
        pass  # it died without an answer
    finally:
        mine.close()
        if outcome is None:
            child.terminate()
        child.join(END_SECONDS)
    if outcome is None:
        return Ended("failed", f"the process of {function} ended with code {child.exitcode}")
    return Ended(*outcome)


def _work(sending: Connection, module: str, function: str, arguments: tuple[Any, ...]) -> None:
    """In the child: report how it ended; a defect's message may hold values and is left out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the scheduler decides when to end
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        words = getattr(import_module(module), function)(*arguments)
        sending.send(("done", str(words)))
    except (LeaseHeld, LeaseLost) as error:
        sending.send(("held", describe_error(error)))
    except Exception as error:  # noqa: BLE001 - the scheduler's log has to say how it ended
        sending.send(("failed", describe_error(error)))
    finally:
        sending.close()


def _end_with_parent() -> None:
    """End with the parent: a killed scheduler leaves no training behind, which is restarted."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
