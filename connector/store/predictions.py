"""Predictions in SQL: written with their run, read back in blocks, marked when a node is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from ringfence.connector import fault_points
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Prediction, StoredPrediction
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.key_salt import SaltedPredictions
from ringfence.connector.store.audit_chain.prediction_json import (
    Digests,
    FloatJsonCache,
    decided_blocks,
    json_blocks,
    to_json_columns,
)
from ringfence.connector.store.blocks import insert_columns, read_blocks, split
from ringfence.connector.store.engine import Store
from ringfence.connector.store.rows import PREDICTION, prediction_from_row
from ringfence.connector.store.tables import prediction
from ringfence.connector.store.worklist.entries import insert_entries
from ringfence.connector.store.writer import Writer

NODES_PER_BLOCK = 5_000  # of a run that is written: what stands in memory beside the run's arrays
KEYS_PER_BLOCK = 50_000  # of nodes that are evaluated already


@dataclass(frozen=True, slots=True)
class IdentityBlock:
    """Some evaluated nodes as columns: record's keys, sealed times (None: an older version's)."""

    node_keys: Sequence[str]
    created_ns: Sequence[int | None]
    in_graph: Sequence[bool]


def insert_predictions(
    connection: Connection,
    project: str,
    model: str,
    seq: int,
    decided: PredictionTable | Sequence[Prediction],
    salted: SaltedPredictions | None = None,
) -> Digests:
    """Write the predictions of a run inside the transaction that decides it; return digests.

    Block by block, with the worklist's entries of each: memory besides the run's arrays does not
    grow with it, except for forty bytes per node: the order of its keys, and the hash of its row
    with a salted key (`salted`). A process that dies
    between two blocks leaves none of them: the transaction is one.
    """
    digests, recurring = Digests(), FloatJsonCache()
    constants = {"project": project, "seq": seq, "in_graph": True}
    for block in decided_blocks(decided, NODES_PER_BLOCK):
        texts = to_json_columns(block, recurring)
        insert_columns(connection, prediction, texts.columns(), constants)
        insert_entries(connection, project, model, seq, block)
        digests.update(texts)
        if salted is not None:
            salted.update(texts)
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


def identity_digest(predictions: Sequence[Prediction]) -> str:
    """Return one hash over creation times and digests of what was read, in the keys' order."""
    return _digests(predictions).identities


def _digests(predictions: Sequence[Prediction]) -> Digests:
    digests = Digests()
    for block in json_blocks(predictions):
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
        result = connection.execution_options(yield_per=rows).execute(query)
        yield from result.scalars().partitions()


def are_any_evaluated(store: Store, project: str, keys: Sequence[str]) -> bool:
    """Whether a node with one of `keys` was ever evaluated."""
    query = select(prediction.c.seq).where(prediction.c.project == project)
    with store.reading() as connection:
        return any(
            connection.execute(query.where(prediction.c.node_key.in_(part)).limit(1)).first()
            for part in split(keys)
        )


def identity_blocks(
    store: Store, project: str, after_seq: int = 0, rows: int = KEYS_PER_BLOCK
) -> Iterator[IdentityBlock]:
    """Yield which nodes were evaluated in runs after `after_seq`, at most `rows` at a time."""
    query = select(prediction.c.node_key, prediction.c.created_ns, prediction.c.in_graph).where(
        prediction.c.project == project, prediction.c.seq > after_seq
    )
    with store.reading() as connection:
        result = connection.execution_options(yield_per=rows).execute(query)
        for part in result.partitions():
            yield IdentityBlock(*zip(*part, strict=True))


def runs_of_nodes(connection: Connection, project: str, keys: Sequence[str]) -> set[int]:
    """Return the runs that evaluated some nodes."""
    query = select(prediction.c.seq).where(prediction.c.project == project).distinct()
    return {
        int(seq)
        for part in split(keys)
        for seq in connection.execute(query.where(prediction.c.node_key.in_(part))).scalars()
    }


def mark_gone(writer: Writer, keys: Sequence[str]) -> None:
    """Mark predictions whose node has left the graph; the predictions stay."""
    if not keys:
        return
    with writer.store.transaction() as connection:
        writer.begin(connection)
        record_gone(connection, writer, keys)


def record_gone(connection: Connection, writer: Writer, keys: Sequence[str]) -> None:
    """Do what `mark_gone` does inside the caller's transaction."""
    project = writer.lease.project
    set_gone(connection, project, keys)
    chain.append(connection, project, writer.key, "gone", {"gone": sorted(keys)})


def those_in_graph(connection: Connection, project: str, keys: Sequence[str]) -> list[str]:
    """Return those of `keys` whose prediction does not say yet that its node has left."""
    query = select(prediction.c.node_key).where(
        prediction.c.project == project, prediction.c.in_graph.is_(True)
    )
    return [
        str(key)
        for part in split(keys)
        for key in connection.execute(query.where(prediction.c.node_key.in_(part))).scalars()
    ]


def set_gone(connection: Connection, project: str, keys: Sequence[str]) -> None:
    """Mark predictions in SQL; the caller's chain entry lists them."""
    for part in split(keys):
        connection.execute(
            update(prediction)
            .where(prediction.c.project == project, prediction.c.node_key.in_(part))
            .values(in_graph=False)
        )
