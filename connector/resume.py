"""Go on with a first read that died: what it had saved stays, the rest is read.

Nothing hangs on the order in which the server gives rows. The next attempt asks for all keys (a
small part of a whole read), compares them with the mirror, and reads the nodes that it lacks; then
the relationships of the nodes whose relationships it lacks. From there on it is an ordinary read
from the watermark at which the first attempt began, with all the checks of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ringfence.connector.ahead import ahead
from ringfence.connector.changes import read_again, read_keys, read_sources
from ringfence.connector.keys import decode_key
from ringfence.connector.mirror import Mirror

if TYPE_CHECKING:
    from ringfence.connector.refresh import Reader

KEPT_SECONDS = 3600.0  # what was read longer ago may have changed too much
IDS = 100_000  # ids that one query is asked for


def finish(reader: Reader, mirror: Mirror, expected: int) -> bool:
    """Read what `mirror` lacks; False where nodes that it has are no longer in the graph."""
    mirror.advance()
    mirror.rejected.clear()  # they aren't among the keys, so they are read again
    missing = _missing(reader, mirror)
    if missing is None:
        return False
    for start in range(0, len(missing), IDS):
        ids = missing[start : start + IDS]
        nodes = read_again(reader.graph, reader.mapping, mirror.width, ids, reader.rows)
        reader.take_nodes(mirror, ahead(nodes), expected)
    for index in range(len(reader.mapping.relationships)):
        _finish_relationships(reader, mirror, index)
    return True


def _missing(reader: Reader, mirror: Mirror) -> list[str] | None:
    """The ids of nodes that the mirror lacks; None where it has some that are gone."""
    seen = np.zeros(mirror.size, np.bool_)
    missing: list[str] = []
    for ids, keys in ahead(read_keys(reader.graph, reader.mapping, reader.rows)):
        rows = mirror.rows_of(keys)
        seen[rows[rows >= 0]] = True
        missing += [ids[i] for i in np.flatnonzero(rows < 0).tolist()]
    return missing if bool(seen.all()) else None


def _finish_relationships(reader: Reader, mirror: Mirror, index: int) -> None:
    """A type without times is read whole: what joined nodes meanwhile would show nowhere else."""
    timed = reader.mapping.relationships[index].created_at is not None
    left = mirror.sources_left(index) if timed else mirror.keys
    keys = [decode_key(key) for key in left]
    sources = read_sources(reader.graph, reader.mapping, index, keys, reader.rows)
    reader.take_sources(mirror, ahead(sources))
