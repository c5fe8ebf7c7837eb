"""The rows of an audit pack, written block by block: predictions, classes, groups, the chain.

One JSON object per line, gzipped, which the standard library of every language reads; predictions
as Parquet too, where pyarrow is installed. Nodes have their keys, or salted hashes of them.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringfence.connector.list_terms import ListTerms
from ringfence.connector.progress import Progress
from ringfence.connector.records import ChainEntry
from ringfence.connector.store.audit_chain.key_salt import salted_key
from ringfence.connector.store.audit_chain.keyless import next_hash
from ringfence.connector.store.engine import Store
from ringfence.connector.store.queries import pack_rows
from ringfence.connector.store.queries.pack_rows import Row
from ringfence.connector.store.queries.period import PeriodRun
from ringfence.connector.store.queries.records import as_row
from ringfence.connector.store.worklist.list_counts import ListCount, list_counts
from ringfence.connector.store.worklist.listed_nodes import listed_runs
from ringfence.connector.store.worklist.marks import KIND as MARKED_NODE
from ringfence.jobs.auditing.alarms.rules import RECORD
from ringfence.jobs.integrity.alarm import SOUND
from ringfence.jobs.report.pack_archive import PackArchive
from ringfence.jobs.views.tables import TableView, csv_blocks
from ringfence.jobs.views.tables.model import Rows

PREDICTIONS, LABELS, GROUPS = "predictions.jsonl.gz", "labels.jsonl.gz", "groups.jsonl.gz"
MARKS, LISTS = "marks.jsonl.gz", "lists.json"
COUNTED_LISTS = (
    "nodes on the lists of the runs decided in the period, with the classes that were known when "
    "the pack was made"
)
WITHHELD_OF_MARKS = ("who", "note", "assignee")
"""Texts that people typed: with salted keys they stay out, since they may name nodes."""
PARQUET = "predictions.parquet"
CHAIN = "chain.jsonl"
WITHHELD = "withheld: it may name nodes"
JSON_COLUMNS = ("classes", "p_values", "scores")

NameOf = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """How far the chain in a pack reaches: its length, both hashes of its end, its times."""

    entries: int = 0
    hmac: str = ""
    keyless: str = ""
    first_ns: int | None = None
    until_ns: int = 0

    def after(self, entry: ChainEntry) -> ChainEnd:
        """Return the end with one entry more."""
        at_ns = entry_ns(entry)
        return ChainEnd(
            entry.n,
            entry.hash,
            next_hash(self.keyless, entry),
            self.first_ns if self.first_ns is not None else at_ns,
            max(self.until_ns, at_ns or 0),
        )


def plain_name(key: str) -> str:
    """Return a node's key as its name in a pack with plain keys."""
    return key


def salted_name(salt: bytes) -> NameOf:
    """Return the function that names nodes in a pack with salted keys."""
    return lambda key: salted_key(salt, key)


def write_chain(
    archive: PackArchive, store: Store, project: str, progress: Progress, *, withhold: bool
) -> ChainEnd:
    """Write the chain from its beginning; `withhold` bodies that name nodes."""
    end = ChainEnd()
    with archive.member(CHAIN) as file:
        for block in pack_rows.chain_blocks(store, project):
            for entry in block:
                row = as_row(entry)
                if withhold and names_nodes(entry):
                    digest = hashlib.sha256(entry.body.encode("utf-8", "surrogatepass"))
                    row |= {"body": None, "body_sha256": digest.hexdigest()}
                file.write(_line(row))
                end = end.after(entry)
            progress("entries of the chain packed", end.entries, 0)
    return end


def names_nodes(entry: ChainEntry) -> bool:
    """Whether the body of an entry may have keys of nodes.

    Of nodes that left, or that a person marked; and what a verification found names nodes too.
    """
    facts = entry.facts
    if entry.kind == "alarms":
        return bool(RECORD in facts["states"] and facts["states"][RECORD][2] != SOUND)
    if entry.kind == "alarm":
        return bool(facts["rule"] == RECORD and facts["words"] != SOUND)
    left = entry.kind in ("applied", "gone") and bool(facts.get("gone"))
    return left or entry.kind == MARKED_NODE


def withhold_words(rows: Rows) -> Rows:
    """Return rows of a table without the sentences of verifications, which may name nodes."""
    return [
        row | {"words": WITHHELD}
        if row.get("rule") == RECORD or row.get("job") in ("verify", "reconcile")
        else row
        for row in rows
    ]


def entry_ns(entry: ChainEntry) -> int | None:
    """Return when an entry was written; None where it does not say."""
    for name in ("at_ns", "decided_ns", "audited_ns", "trained_ns"):
        if isinstance(entry.facts.get(name), int):
            return int(entry.facts[name])
    return None


def write_predictions(
    archive: PackArchive,
    store: Store,
    project: str,
    runs: Sequence[PeriodRun],
    name_of: NameOf,
    scratch: Path,
    progress: Progress,
) -> int:
    """Write the predictions of some runs, and the same as Parquet; return how many there are."""
    written, total = 0, sum(decided.n_evaluated for decided in runs)
    with archive.gzipped(PREDICTIONS) as file, _parquet(scratch) as add_rows:
        for decided in runs:
            for block in pack_rows.prediction_blocks(store, project, decided.seq, name_of):
                rows = [_prediction(decided.seq, row, name_of) for row in block]
                file.write(b"".join(map(_line, rows)))
                add_rows(rows)
                written += len(rows)
                progress("predictions packed", written, total)
    if scratch.exists():
        archive.add_file(PARQUET, scratch)
    return written


def write_labels(
    archive: PackArchive,
    store: Store,
    project: str,
    since_ns: int,
    name_of: NameOf,
    progress: Progress,
) -> int:
    """Write every class that was noticed since a time; return how many there are."""
    written = 0
    with archive.gzipped(LABELS) as file:
        for block in pack_rows.label_blocks(store, project, since_ns, name_of):
            file.write(b"".join(_line(_named(row, name_of)) for row in block))
            written += len(block)
            progress("classes packed", written, 0)
    return written


def write_groups(
    archive: PackArchive,
    store: Store,
    project: str,
    runs: Sequence[PeriodRun],
    name_of: NameOf,
    progress: Progress,
) -> None:
    """Write the groups of the nodes of some runs."""
    with archive.gzipped(GROUPS) as file:
        for done, decided in enumerate(runs, start=1):
            for block in pack_rows.group_blocks(store, project, decided.seq, name_of):
                named = ({"run": decided.seq, **_named(row, name_of)} for row in block)
                file.write(b"".join(map(_line, named)))
            progress("runs whose groups are packed", done, len(runs))


def write_table(archive: PackArchive, view: TableView, blocks: Iterable[Rows]) -> None:
    """Write a table as CSV, block by block."""
    with archive.member(f"tables/{view.name}.csv") as file:
        for text in csv_blocks(view.columns, blocks):
            file.write(text.encode())


def write_lists(
    archive: PackArchive, store: Store, project: str, runs: Sequence[PeriodRun]
) -> None:
    """Write how many nodes each list of each run holds, and how many of them are wrong so far."""
    seqs = {decided.seq for decided in runs}
    with store.reading() as connection:
        decided = [run for run in listed_runs(connection, project) if run.seq in seqs]
        counts = list_counts(connection, project, decided) if decided else []
    of_list: dict[tuple[int, str], list[ListCount]] = defaultdict(list)
    for count in counts:
        of_list[count.seq, count.name].append(count)
    rows = [
        {"run": run.seq, **_counted_list(facts.terms, of_list[run.seq, facts.terms.name])}
        for run in decided
        for facts in run.lists
    ]
    body = {"counted": COUNTED_LISTS, "rows": rows}
    archive.add_text(LISTS, json.dumps(body, indent=1, sort_keys=True) + "\n")


def _counted_list(terms: ListTerms, counts: Sequence[ListCount]) -> Row:
    """What a list of one run promises, and how many nodes it holds."""
    known = [count for count in counts if count.label is not None]
    wrong = [count for count in known if terms.is_wrong(str(count.label))]
    listed, of_known, false = (sum(it.nodes for it in of) for of in (counts, known, wrong))
    return {
        "list": terms.name, "class": terms.class_, "clears": terms.is_clear,
        "may_be_wrong": terms.may_be_wrong, "per": terms.per,
        "listed": listed, "known": of_known, "wrong": false,
    }  # fmt: skip


def write_marks(
    archive: PackArchive, store: Store, project: str, name_of: NameOf, *, withhold: bool
) -> None:
    """Write what people did with nodes and what came out; `withhold` the texts that they typed."""
    with archive.gzipped(MARKS) as file:
        for block in pack_rows.mark_blocks(store, project):
            for row in block:
                named = _named(row, name_of)
                if withhold:
                    named = {k: v for k, v in named.items() if k not in WITHHELD_OF_MARKS}
                file.write(_line(named))


def _named(row: Row, name_of: NameOf) -> Row:
    return {"key": name_of(row["node_key"])} | {k: v for k, v in row.items() if k != "node_key"}


def _prediction(seq: int, row: Row, name_of: NameOf) -> Row:
    values = {name: _decoded(row[name]) for name in JSON_COLUMNS}
    return {
        "run": seq, "key": name_of(row["node_key"]), **values,
        "degree": row["degree"], "band": row["band"], "sampled": bool(row["sampled"]),
        **({} if row["lists"] is None else {"lists": _decoded(row["lists"])}),
    }  # fmt: skip


def _decoded(text: str) -> Any:
    """The value of a JSON column; a text that someone edited into something else, as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _line(row: Row) -> bytes:
    return (json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n").encode()


def _flat(row: Row) -> Row:
    """A prediction as Parquet has it: a value of another form than its column's is null."""
    values = {name: row[name] if isinstance(row[name], list) else None for name in JSON_COLUMNS}
    lists = row.get("lists")
    return row | values | {"lists": list(lists.items()) if isinstance(lists, dict) else None}


@contextmanager
def _parquet(path: Path) -> Iterator[Callable[[Sequence[Row]], None]]:
    """Open a Parquet file; without pyarrow there is none. Details that went are null in it."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError:
        yield lambda _rows: None
        return
    texts, numbers = pa.list_(pa.string()), pa.list_(pa.float64())
    schema = pa.schema(
        {"run": pa.int64(), "key": pa.string(), "classes": texts, "p_values": numbers,
         "scores": numbers, "degree": pa.int64(), "band": pa.string(), "sampled": pa.bool_(),
         "lists": pa.map_(pa.string(), pa.float64())}
    )  # fmt: skip
    with parquet.ParquetWriter(path, schema) as writer:

        def add_rows(rows: Sequence[Row]) -> None:
            writer.write_table(pa.Table.from_pylist([_flat(row) for row in rows], schema))

        yield add_rows
