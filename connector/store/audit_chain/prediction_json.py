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
from ringfence.connector.store.audit_chain.float_json import json_rows
from ringfence.connector.store.blocks import ROWS_PER_STATEMENT, split
from ringfence.connector.store.engine import dumps

MIN_RECURRENCE = 4  # of each value; below, looking up texts is no faster than writing them
MAX_KEPT_TEXTS = 50_000  # of recurring values, from block to block
MAX_CODE_BYTES = 8  # of a set as one number: 64 classes

__all__ = [
    "Digests",
    "FloatJsonCache",
    "PredictionJson",
    "decided_blocks",
    "json_blocks",
    "to_json_columns",
]

Decided = PredictionTable | Sequence[Prediction]


@dataclass(frozen=True, slots=True)
class PredictionJson:
    """Columns of some predictions in the order of their keys; classes, p-values, scores as JSON."""

    keys: Sequence[str]
    classes: Sequence[str]
    p_values: Sequence[str]
    scores: Sequence[str]
    sizes: Sequence[int]
    degrees: Sequence[int]
    top_p: Sequence[float]
    bands: Sequence[str | None]
    created_ns: Sequence[int | None]
    evidence: Sequence[str | None]

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return the columns of the table `prediction` that differ from row to row."""
        return {
            "node_key": self.keys, "size": self.sizes, "classes": self.classes,
            "p_values": self.p_values, "scores": self.scores, "degree": self.degrees,
            "top_p": self.top_p, "band": self.bands, "created_ns": self.created_ns,
            "evidence": self.evidence,
        }  # fmt: skip


class Digests:
    """Hashes over predictions in the order of their keys: payload, degrees, bands, identities."""

    def __init__(self) -> None:
        self._payload, self._degrees, self._bands = (hashlib.sha256() for _ in range(3))
        self._identities = hashlib.sha256()

    def update(self, block: PredictionJson) -> None:
        """Add the next block."""
        keys = [encode_basestring(key) for key in block.keys]  # as dumps does, without its setup
        bands = {band: dumps(band) for band in set(block.bands)}
        texts = zip(keys, block.classes, block.p_values, block.scores, strict=True)
        self._payload.update("".join([f"[{k},{c},{p},{s}]" for k, c, p, s in texts]).encode())
        degrees = zip(keys, block.degrees, strict=True)
        self._degrees.update("".join([f"[{key},{degree}]" for key, degree in degrees]).encode())
        pairs = zip(keys, block.bands, strict=True)
        self._bands.update("".join([f"[{key},{bands[band]}]" for key, band in pairs]).encode())
        nodes = zip(keys, block.created_ns, block.evidence, strict=True)
        self._identities.update("".join([_identity(*node) for node in nodes]).encode())

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

    @property
    def identities(self) -> str:
        """Over keys, creation times and digests of what was read."""
        return self._identities.hexdigest()


def _identity(key: str, created_ns: int | None, evidence: str | None) -> str:
    time = "null" if created_ns is None else created_ns
    return f"[{key},{time},{'null' if evidence is None else encode_basestring(evidence)}]"


def decided_blocks(predictions: Decided, size: int = ROWS_PER_STATEMENT) -> Iterator[Decided]:
    """Yield predictions in the order of their keys, as many at a time as fit one statement."""
    if isinstance(predictions, PredictionTable):
        return predictions.blocks_by_key(size)
    return split(sorted(predictions, key=lambda prediction: prediction.node_key), size)


def to_json_columns(block: Decided, recurring: FloatJsonCache | None = None) -> PredictionJson:
    """Return a block's predictions as texts; `recurring` are texts of blocks before it."""
    if isinstance(block, PredictionTable):
        return _texts_of_table(block, recurring)
    return _texts_of_records(block)


def json_blocks(predictions: Decided, size: int = ROWS_PER_STATEMENT) -> Iterator[PredictionJson]:
    """Yield predictions in the order of their keys, block by block as texts."""
    recurring = FloatJsonCache()
    return (to_json_columns(block, recurring) for block in decided_blocks(predictions, size))


def _texts_of_table(block: PredictionTable, recurring: FloatJsonCache | None) -> PredictionJson:
    return PredictionJson(
        block.keys,
        _set_texts(block.sets, block.class_names),
        (FloatJsonCache() if recurring is None else recurring).rows(block.p_values),
        json_rows(block.scores),
        block.sets.sum(axis=1).tolist(),
        block.degrees.tolist(),
        block.p_values.max(axis=1).tolist(),
        [""] * len(block) if block.bands is None else block.bands,
        block.creation_times(),
        block.evidence_texts(),
    )


def _texts_of_records(records: Sequence[Prediction]) -> PredictionJson:
    return PredictionJson(
        [record.node_key for record in records],
        [dumps(record.classes) for record in records],
        [dumps(record.p_values) for record in records],
        [dumps(record.scores) for record in records],
        [record.size for record in records],
        [record.degree for record in records],
        [max(record.p_values) for record in records],
        [record.band for record in records],
        [record.created_ns for record in records],
        [record.evidence for record in records],
    )


class FloatJsonCache:
    """The JSON of values that recur, as p-values of one run do; each is written once.

    >>> texts = FloatJsonCache()
    >>> texts.rows(np.array([[0.5, 1.0], [1.0, 0.5]] * 9))[:2]
    ['[0.5,1.0]', '[1.0,0.5]']
    >>> texts.rows(np.array([[1.0, 0.25]] * 9))[:1]
    ['[1.0,0.25]']
    """

    def __init__(self) -> None:
        self._values = np.empty(0)
        self._texts: list[str] = []

    def rows(self, values: NDArray[np.float64]) -> list[str]:
        """Return each row as JSON; where few values recur, as any other numbers."""
        place = self._places(values)
        if place is None:
            return json_rows(values)
        texts, rows = self._texts, place.tolist()
        return ["[" + ",".join([texts[at] for at in row]) + "]" for row in rows]

    def _places(self, values: NDArray[np.float64]) -> NDArray[np.int64] | None:
        """Where each value stands among those known; None where too many are new."""
        place = self._find(values)
        if place is None:
            distinct = np.unique(values)
            if MIN_RECURRENCE * len(distinct) > values.size:
                return None
            known = np.union1d(self._values, distinct)
            self._values = distinct if len(known) > MAX_KEPT_TEXTS else known
            self._texts = dumps(self._values.tolist())[1:-1].split(",")
            place = np.searchsorted(self._values, values)
        return place

    def _find(self, values: NDArray[np.float64]) -> NDArray[np.int64] | None:
        if not len(self._values):
            return None
        place = np.minimum(np.searchsorted(self._values, values), len(self._values) - 1)
        return place if (self._values[place] == values).all() else None


def _set_texts(sets: NDArray[np.bool_], names: tuple[str, ...]) -> list[str]:
    """Return the classes of each set as JSON; sets that are equal share one text.

    >>> _set_texts(np.array([[True, False], [True, True], [False, False]]), ("a", "b"))
    ['["a"]', '["a","b"]', '[]']
    """
    packed = np.packbits(sets, axis=1)
    codes = packed.view(f"V{packed.shape[1]}").reshape(-1)
    if packed.shape[1] <= MAX_CODE_BYTES:
        wide = np.zeros((len(sets), MAX_CODE_BYTES), np.uint8)
        wide[:, : packed.shape[1]] = packed
        codes = wide.view(np.uint64).reshape(-1)
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    labels = np.array(names, object)
    texts = [dumps(labels[sets[row]].tolist()) for row in first.tolist()]
    return [texts[at] for at in place.reshape(-1).tolist()]
