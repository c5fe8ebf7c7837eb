"""Predictions as the texts of their SQL columns, block by block, and the chain's digests over them.

The JSON of a whole block is made by one call and cut into rows; the same texts go into SQL and into
the digests. They are, byte by byte, what `dumps` makes of single records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Prediction
from ringfence.connector.store.blocks import ROWS_PER_STATEMENT, split
from ringfence.connector.store.engine import dumps

MIN_RECURRENCE = 4  # of each value; below, looking up texts is no faster than writing them

__all__ = ["Digests", "PredictionTexts", "decided_blocks", "text_blocks", "texts_of"]

Decided = PredictionTable | Sequence[Prediction]


@dataclass(frozen=True, slots=True)
class PredictionTexts:
    """Columns of some predictions in the order of their keys; classes, p-values, scores as JSON."""

    keys: Sequence[str]
    classes: Sequence[str]
    p_values: Sequence[str]
    scores: Sequence[str]
    sizes: Sequence[int]
    degrees: Sequence[int]
    top_p: Sequence[float]
    bands: Sequence[str | None]

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return the columns of the table `prediction` that differ from row to row."""
        return {
            "node_key": self.keys, "size": self.sizes, "classes": self.classes,
            "p_values": self.p_values, "scores": self.scores, "degree": self.degrees,
            "top_p": self.top_p, "band": self.bands,
        }  # fmt: skip


class Digests:
    """Hashes over predictions in the order of their keys: payload, degrees and bands."""

    def __init__(self) -> None:
        self._payload, self._degrees, self._bands = (hashlib.sha256() for _ in range(3))

    def update(self, block: PredictionTexts) -> None:
        """Take in the next block."""
        keys = [encode_basestring(key) for key in block.keys]  # as dumps does, without its setup
        bands = {band: dumps(band) for band in set(block.bands)}
        texts = zip(keys, block.classes, block.p_values, block.scores, strict=True)
        self._payload.update("".join([f"[{k},{c},{p},{s}]" for k, c, p, s in texts]).encode())
        degrees = zip(keys, block.degrees, strict=True)
        self._degrees.update("".join([f"[{key},{degree}]" for key, degree in degrees]).encode())
        pairs = zip(keys, block.bands, strict=True)
        self._bands.update("".join([f"[{key},{bands[band]}]" for key, band in pairs]).encode())

    @property
    def payload(self) -> str:
        """Over keys, classes, p-values and scores."""
        return self._payload.hexdigest()

    @property
    def degrees(self) -> str:
        """Over keys and degrees."""
        return self._degrees.hexdigest()

    @property
    def bands(self) -> str:
        """Over keys and bands."""
        return self._bands.hexdigest()


def decided_blocks(predictions: Decided, size: int = ROWS_PER_STATEMENT) -> Iterator[Decided]:
    """Yield predictions in the order of their keys, as many at a time as fit one statement."""
    if isinstance(predictions, PredictionTable):
        return predictions.blocks_by_key(size)
    return split(sorted(predictions, key=lambda one: one.node_key), size)


def texts_of(block: Decided) -> PredictionTexts:
    """Return a block's predictions as texts."""
    if isinstance(block, PredictionTable):
        return _texts_of_table(block)
    return _texts_of_records(block)


def text_blocks(predictions: Decided, size: int = ROWS_PER_STATEMENT) -> Iterator[PredictionTexts]:
    """Yield predictions in the order of their keys, block by block as texts."""
    return map(texts_of, decided_blocks(predictions, size))


def _texts_of_table(block: PredictionTable) -> PredictionTexts:
    return PredictionTexts(
        block.keys,
        _set_texts(block.sets, block.class_names),
        _row_texts_of_few(block.p_values),
        _row_texts(block.scores),
        block.sets.sum(axis=1).tolist(),
        block.degrees.tolist(),
        block.p_values.max(axis=1).tolist(),
        [""] * len(block) if block.bands is None else block.bands,
    )


def _texts_of_records(records: Sequence[Prediction]) -> PredictionTexts:
    return PredictionTexts(
        [one.node_key for one in records],
        [dumps(one.classes) for one in records],
        [dumps(one.p_values) for one in records],
        [dumps(one.scores) for one in records],
        [one.size for one in records],
        [one.degree for one in records],
        [max(one.p_values) for one in records],
        [one.band for one in records],
    )


def _row_texts(values: NDArray[np.float64]) -> list[str]:
    """Return each row as JSON.

    >>> _row_texts(np.array([[0.5, 1.0], [0.25, 1e-9]]))
    ['[0.5,1.0]', '[0.25,1e-09]']
    """
    whole = dumps(values.tolist())  # [[…],[…]]
    return [f"[{row}]" for row in whole[2:-2].split("],[")]


def _row_texts_of_few(values: NDArray[np.float64]) -> list[str]:
    """Return each row as JSON, faster where few values recur, as p-values of one run do.

    >>> _row_texts_of_few(np.array([[0.5, 1.0], [1.0, 0.5]] * 9))[:2]
    ['[0.5,1.0]', '[1.0,0.5]']
    """
    distinct, place = np.unique(values, return_inverse=True)
    if MIN_RECURRENCE * len(distinct) > values.size:
        return _row_texts(values)
    texts = dumps(distinct.tolist())[1:-1].split(",")
    rows: list[list[int]] = np.asarray(place).reshape(len(values), -1).tolist()
    return ["[" + ",".join([texts[at] for at in row]) + "]" for row in rows]


def _set_texts(sets: NDArray[np.bool_], names: tuple[str, ...]) -> list[str]:
    """Return the classes of each set as JSON; sets that are equal share one text.

    >>> _set_texts(np.array([[True, False], [True, True], [False, False]]), ("a", "b"))
    ['["a"]', '["a","b"]', '[]']
    """
    patterns, place = np.unique(sets, axis=0, return_inverse=True)
    labels = np.array(names, object)
    texts = [dumps(labels[pattern].tolist()) for pattern in patterns]
    return [texts[at] for at in place.reshape(-1).tolist()]
