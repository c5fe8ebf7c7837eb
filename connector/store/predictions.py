"""Predictions in SQL: written with their run, read back in blocks, marked when a node is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, select, update

from ringfence.connector import fault_points
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Prediction, StoredPrediction
from ringfence.connector.store import chain
from ringfence.connector.store.blocks import insert_columns, read_blocks, split
from ringfence.connector.store.engine import Store
from ringfence.connector.store.rows import PREDICTION, prediction_from_row
from ringfence.connector.store.tables import prediction
from ringfence.connector.store.trail.prediction_texts import (
    Digests,
    ValueTexts,
    decided_blocks,
    text_blocks,
    texts_of,
)
from ringfence.connector.store.worklist.entries import insert_entries
from ringfence.connector.store.writer import Writer

NODES_PER_BLOCK = 5_000  # of a run that is written: what stands in memory beside the run's arrays
KEYS_PER_BLOCK = 50_000  # of nodes that are evaluated already


def insert_predictions(
    connection: Connection,
    project: str,
    model: str,
    seq: int,
    decided: PredictionTable | Sequence[Prediction],
) -> Digests:
    """Write the predictions of a run inside the transaction that decides it; return digests.

    Block by block, with the worklist's entries of each: what there is of a run beside its arrays
    does not grow with it, but for eight bytes per node, the order of its keys. A process that dies
    between two blocks leaves none of them: the transaction is one.
    """
    digests, recurring = Digests(), ValueTexts()
    constants = {"project": project, "seq": seq, "in_graph": True}
    for block in decided_blocks(decided, NODES_PER_BLOCK):
        texts = texts_of(block, recurring)
        insert_columns(connection, prediction, texts.columns(), constants)
        insert_entries(connection, project, model, seq, block)
        digests.update(texts)
        fault_points.reach("block in sql")
    return digests


def payload_digest(predictions: Sequence[Prediction]) -> str:
    """Return one hash over all predictions, in the order of their keys."""
    return _digests(predictions).payload


def degree_digest(predictions: Sequence[Prediction]) -> str:
    """Return one hash over the degrees, in the order of the keys."""
    return _digests(predictions).degrees


def band_digest(predictions: Sequence[Prediction]) -> str:
    """Return one hash over the bands, in the order of the keys."""
    return _digests(predictions).bands


def _digests(predictions: Sequence[Prediction]) -> Digests:
    digests = Digests()
    for block in text_blocks(predictions):
        digests.update(block)
    return digests


def payload(store: Store, project: str, seq: int, rows: int) -> Iterator[list[StoredPrediction]]:
    """Yield a run's stored predictions in blocks, by key."""
    query = select(*PREDICTION).where(prediction.c.project == project, prediction.c.seq == seq)
    for block in read_blocks(store, query, prediction.c.node_key, rows):
        yield [prediction_from_row(row) for row in block]


def payload_keys(store: Store, project: str, seq: int, rows: int) -> Iterator[list[str]]:
    """Yield the keys of a run's predictions in blocks, sorted."""
    query = select(prediction.c.node_key).where(
        prediction.c.project == project, prediction.c.seq == seq
    )
    for block in read_blocks(store, query, prediction.c.node_key, rows):
        yield [row.node_key for row in block]


def payload_bands(
    store: Store, project: str, seq: int, rows: int
) -> Iterator[list[tuple[str, str]]]:
    """Yield keys and bands of a run's predictions in blocks, sorted; "" where there is no band."""
    query = select(prediction.c.node_key, prediction.c.band).where(
        prediction.c.project == project, prediction.c.seq == seq
    )
    for block in read_blocks(store, query, prediction.c.node_key, rows):
        yield [(row.node_key, row.band or "") for row in block]


def some_predictions(store: Store, project: str, keys: Sequence[str]) -> list[StoredPrediction]:
    """Return the predictions of `keys`."""
    query = select(*PREDICTION).where(
        prediction.c.project == project, prediction.c.node_key.in_(keys)
    )
    with store.reading() as connection:
        return [prediction_from_row(row) for row in connection.execute(query)]


def evaluated_keys(store: Store, project: str, after_seq: int = 0) -> list[str]:
    """Return the keys of nodes evaluated in runs after `after_seq`."""
    return [key for block in evaluated_blocks(store, project, after_seq) for key in block]


def evaluated_blocks(
    store: Store, project: str, after_seq: int = 0, rows: int = KEYS_PER_BLOCK
) -> Iterator[Sequence[str]]:
    """Yield the keys of nodes evaluated in runs after `after_seq`, at most `rows` at a time."""
    query = select(prediction.c.node_key).where(
        prediction.c.project == project, prediction.c.seq > after_seq
    )
    with store.reading() as connection:
        found = connection.execution_options(yield_per=rows).execute(query)
        yield from found.scalars().partitions()


def mark_gone(writer: Writer, keys: Sequence[str]) -> None:
    """Mark predictions whose node has left the graph; the predictions stay."""
    if not keys:
        return
    project = writer.lease.project
    with writer.store.transaction() as connection:
        writer.begin(connection)
        set_gone(connection, project, keys)
        chain.append(connection, project, writer.key, "gone", {"gone": sorted(keys)})


def set_gone(connection: Connection, project: str, keys: Sequence[str]) -> None:
    """Do what `mark_gone` does inside the caller's transaction."""
    for part in split(keys):
        connection.execute(
            update(prediction)
            .where(prediction.c.project == project, prediction.c.node_key.in_(part))
            .values(in_graph=False)
        )
