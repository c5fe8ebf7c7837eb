"""Show how far a start of the embedded server has come: a bar on terminals, lines elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from ringfence.connector.embedded import Progress

__all__ = ["shown_progress"]

LINES_PER_DOWNLOAD = 10


@contextmanager
def shown_progress(console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """A callback for `embedded.start(progress=...)` that shows what it is told.

    A terminal gets a bar that goes away when the server answers; a file or a pipe gets a line
    for every tenth of the download and one for the start. Default: standard error.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Neo4j", total=None)
        yield lambda now: bar.update(
            task, description=_words(now), completed=now.bytes_done, total=now.bytes_total or None
        )


class _Lines:
    """Prints each tenth of a download once."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: tuple[str, int] | None = None

    def __call__(self, now: Progress) -> None:
        tenth = LINES_PER_DOWNLOAD * now.bytes_done // max(now.bytes_total, 1)
        if (now.stage, tenth) != self._last:
            self._last = now.stage, tenth
            self._console.print(_words(now), highlight=False)


def _words(now: Progress) -> str:
    if now.stage == "start":
        return "Neo4j: starting"
    return (
        f"Neo4j: downloading it once, {now.jars_done} of {now.jars_total} jars, "
        f"{now.bytes_done / 1e6:.0f} of {now.bytes_total / 1e6:.0f} MB"
    )
