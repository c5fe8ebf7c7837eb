"""The predictions of a run as columns: a million sets without a Python object per class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.key_column import key_order, keys_at
from ringfence.connector.records import Prediction

__all__ = ["FurtherSet", "FurtherSizes", "PredictionTable", "count_sizes"]


@dataclass(frozen=True, slots=True)
class PredictionTable:
    """New predictions in columns; row i belongs to the node `keys[i]`.

    class_names [classes] in the model's order · sets bool, p_values and scores float64
    [n, classes] · degrees int64 [n] · bands [n]: the stratum that each was judged in, or None for
    all of them in the stratum "" · created_ns int64 [n] · evidence uint8 [n, bytes]: digests of
    what was read of each node.
    """

    keys: Sequence[str]
    class_names: tuple[str, ...]
    sets: NDArray[np.bool_]
    p_values: NDArray[np.float64]
    scores: NDArray[np.float64]
    degrees: NDArray[np.int64]
    bands: Sequence[str | None] | None = None
    created_ns: NDArray[np.int64] | None = None
    evidence: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: NDArray[np.int64]) -> PredictionTable:
        """Return some rows, in the order given."""
        bands = self.bands
        return PredictionTable(
            keys_at(self.keys, rows),
            self.class_names,
            self.sets[rows],
            self.p_values[rows],
            self.scores[rows],
            self.degrees[rows],
            None if bands is None else [bands[row] for row in rows.tolist()],
            None if self.created_ns is None else self.created_ns[rows],
            None if self.evidence is None else self.evidence[rows],
        )

    def creation_times(self) -> Sequence[int | None]:
        """Return the creation times, None where they were not read."""
        return [None] * len(self) if self.created_ns is None else self.created_ns.tolist()

    def evidence_texts(self) -> Sequence[str | None]:
        """Return the digests of what was read, in hexadecimal; None where there are none."""
        if self.evidence is None:
            return [None] * len(self)
        text, step = self.evidence.tobytes().hex(), 2 * self.evidence.shape[1]
        return [text[at : at + step] for at in range(0, len(text), step)]

    def blocks_by_key(self, size: int) -> Iterator[PredictionTable]:
        """Yield all rows in the order of their keys, at most `size` at a time."""
        for rows in _rows_by_key(self.keys, size):
            yield self.take(rows)

    def records(self) -> list[Prediction]:
        """Return the rows as records; for a few of them."""
        names = np.array(self.class_names, object)
        bands = [""] * len(self) if self.bands is None else self.bands
        columns = (self.keys, self.sets, self.p_values.tolist(), self.scores.tolist())
        identities = self.creation_times(), self.evidence_texts()
        return [
            Prediction(key, tuple(names[inside]), tuple(p), tuple(s), *others)
            for key, inside, p, s, *others in zip(
                *columns, self.degrees.tolist(), bands, *identities, strict=True
            )
        ]


@dataclass(frozen=True, slots=True)
class FurtherSet:
    """The set of an evaluated node at one of the run's alphas after the first, by its size."""

    node_key: str
    alpha: float
    size: int


@dataclass(frozen=True, slots=True)
class FurtherSizes:
    """Sizes of the sets at the alphas after the first, in columns.

    alphas [a] · sizes int64 [a, n]; column i belongs to the node `keys[i]`.
    """

    keys: Sequence[str]
    alphas: tuple[float, ...]
    sizes: NDArray[np.int64]

    def blocks_by_key(self, size: int) -> Iterator[dict[str, list[Any]]]:
        """Yield columns of a row per node and alpha, by key and alpha, `size` nodes at a time.

        >>> further = FurtherSizes(["i:2", "i:1"], (0.3, 0.2), np.array([[1, 2], [3, 4]]))
        >>> next(further.blocks_by_key(5))["size"]
        [4, 2, 3, 1]
        """
        by_alpha = np.argsort(self.alphas)
        alphas = [self.alphas[place] for place in by_alpha.tolist()]
        for rows in _rows_by_key(self.keys, size) if alphas else ():
            yield {
                "node_key": [
                    key for node_key in keys_at(self.keys, rows) for key in [node_key] * len(alphas)
                ],
                "alpha": alphas * len(rows),
                "size": self.sizes[np.ix_(by_alpha, rows)].T.reshape(-1).tolist(),
            }


def _rows_by_key(keys: Sequence[str], size: int) -> Iterator[NDArray[np.int64]]:
    """Yield places in the order of their keys, at most `size` at a time."""
    order = key_order(keys)
    for start in range(0, len(order), size):
        yield order[start : start + size]


def count_sizes(predictions: PredictionTable | Sequence[Prediction]) -> dict[int, int]:
    """Return how many sets there are of each size, by size."""
    if isinstance(predictions, PredictionTable):
        each = predictions.sets.sum(axis=1)
    else:
        each = np.array([prediction.size for prediction in predictions], np.int64)
    sizes, counts = np.unique(each, return_counts=True)
    return dict(zip(sizes.tolist(), counts.tolist(), strict=True))
