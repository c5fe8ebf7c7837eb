#!/usr/bin/env python3
"""Check an audit pack of ringfence, with nothing of ringfence installed.

    python3 verify_pack.py audit.zip
    python3 verify_pack.py audit.zip --public-key public_key.pem --salt audit.salt --json

Needs Python 3.11 and its standard library; the signature is checked where the package
`cryptography` is installed, and otherwise the command of openssl is printed that checks it.
Exit code 0: everything that could be checked fits. 1: something does not. 2: this is no pack.

What fits together here was not changed since the pack was made. It is no proof that the maker of
the pack, who holds the keys, had not rewritten the record before: compare the number and hash of
the last line with one that you were given earlier, or check the time stamp.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import re
import struct
import sys
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

Row = dict[str, Any]
Counts = dict[tuple[str, str, str, float], list[int]]
ListCounts = dict[tuple[int, str], Counter[str | None]]

UNLISTED = {"SHA256SUMS", "head.json", "head.json.sig", "head.json.tsr", "public_key.pem"}
MAX_NAMED = 5
MARKED, MARKS, LISTS = "marked node", "marks.jsonl.gz", "lists.json"
MANIFEST, PROMOTIONS = "manifest.json", "promotions.json"
CARDS, MANIFEST_OF_MODEL = "model-cards/", ".manifest.json"
COUNTS = ("evaluated", "known", "covered", "classes_in_sets")
SIGNED_FIELDS = ("chain_sha256", "entries", "hmac_head", "project", "public_key", "sums_sha256")
SHA256_ID = "0609608648016503040201"  # the object identifier 2.16.840.1.101.3.4.2.1 in DER
IMPRINTS = (
    bytes.fromhex(f"3031300d{SHA256_ID}05000420"),
    bytes.fromhex(f"302f300b{SHA256_ID}0420"),
)
"""What stands before the hash of a time stamp's message (RFC 3161), with and without parameters."""

READABLE_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that packs are made with

REASONS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((FileNotFoundError, KeyError), "it is not in the pack"),
    ((RecursionError,), "its JSON is nested deeper than that of any pack"),
    ((NotImplementedError,), "it is compressed in a way that packs are not; unpack it first"),
    ((RuntimeError,), "it is encrypted"),
    ((zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, struct.error),
     "its compressed data is damaged or cut off"),
    ((UnicodeDecodeError,), "it is no text in UTF-8"),
)  # fmt: skip
"""Why a file can't be read, by what its readers raise; the first that fits."""

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, EOFError,
              OSError, RuntimeError, MemoryError, zlib.error, struct.error,
              zipfile.BadZipFile)  # fmt: skip
"""What reading damaged files, and values of another kind than a pack's, may raise."""


class UnreadableFile(Exception):
    """A file that can't be read, as a sentence."""


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn what the readers of a file raise into a sentence that names the file."""
    try:
        yield
    except UNREADABLE as error:
        reason = next((words for kinds, words in REASONS if isinstance(error, kinds)), str(error))
        raise UnreadableFile(f"{name} can't be read: {reason}.") from None


class Pack:
    """The files of a pack: a zip archive, or the folder that it was unpacked to.

    `compared` are the names of the files whose content a check asked for.
    """

    def __init__(self, path: str) -> None:
        self.path, self.compared = Path(path), set[str]()
        with reading(path):
            self.archive = None if self.path.is_dir() else zipfile.ZipFile(self.path)

    def names(self) -> list[str]:
        """Return the names of all files; one that an archive has twice is named twice."""
        if self.archive is not None:
            return [name for name in self.archive.namelist() if not name.endswith("/")]
        files = (path for path in self.path.rglob("*") if path.is_file())
        return sorted(path.relative_to(self.path).as_posix() for path in files)

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading."""
        if self.archive is None:
            return (self.path / name).open("rb")
        if self.archive.getinfo(name).compress_type not in READABLE_COMPRESSIONS:
            raise NotImplementedError(name)
        return self.archive.open(name)

    def read(self, name: str) -> bytes:
        """Return a small file whole."""
        self.compared.add(name)
        with reading(name), self.open(name) as file:
            return file.read()

    def read_json(self, name: str) -> Any:
        """Return the value of a small JSON file."""
        text = self.read(name)
        with reading(name):
            return json.loads(text)

    def lines(self, name: str) -> Iterator[Row]:
        """Yield the JSON objects of a file with one in each line, gzipped or not."""
        self.compared.add(name)
        with reading(name), self.open(name) as file:
            text: Iterable[bytes] = gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file
            for n, line in enumerate(text, start=1):
                yield read_object(line, f"line {n}")

    def hash(self, name: str) -> str:
        """Return the SHA-256 of a file, read in pieces."""
        digest = hashlib.sha256()
        with reading(name), self.open(name) as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        return digest.hexdigest()


def read_object(text: str | bytes, where: str) -> Row:
    """Return the JSON object that a text is; `ValueError` says where there is none."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where} is no JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError(f"{where} is no JSON object")
    return value


class Report:
    """Sentences about what was seen, what does not fit, and what could not be checked."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.problems: list[str] = []
        self.unchecked: list[str] = []

    def see(self, sentence: str) -> None:
        """Add something that fits."""
        self.seen.append(sentence)

    def find(self, sentence: str) -> None:
        """Add something that does not fit."""
        self.problems.append(sentence)

    def skip(self, sentence: str) -> None:
        """Add something that can't be checked here."""
        self.unchecked.append(sentence)


def canonical(value: Any) -> str:
    """Return JSON as the audit store writes it."""
    return json.dumps(
        value, allow_nan=False, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )


def sha256(text: str | bytes) -> str:
    """Return the SHA-256 of a text or of bytes."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()


def hash_set(rows: Iterable[bytes]) -> str:
    """Return the hash over rows whatever their order: over their own hashes, sorted."""
    return hashlib.sha256(b"".join(sorted(rows))).hexdigest()


def row_hash(row: Sequence[Any]) -> bytes:
    """Return the hash of one row."""
    return hashlib.sha256(canonical(row).encode("utf-8", "surrogatepass")).digest()


def check_sums(pack: Pack, report: Report) -> dict[str, str]:
    """Compare every file with SHA256SUMS; return what it lists."""
    names, before = pack.names(), len(report.problems)
    for name, count in Counter(names).items():
        if count > 1:
            report.find(f"The archive has {count} files of the name {name}.")
    sums: dict[str, str] = {}
    for line in pack.read("SHA256SUMS").decode(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        sums[name] = digest
    for name in sorted(set(sums) - set(names)):
        report.find(f"{name} is listed in SHA256SUMS, but is not in the pack.")
    for name in sorted(set(names) - set(sums) - UNLISTED):
        report.find(f"{name} is in the pack, but not listed in SHA256SUMS.")
    for name in sorted(set(sums) & set(names)):
        try:
            if pack.hash(name) != sums[name]:
                report.find(f"{name} is not the file that SHA256SUMS lists: it was changed.")
        except UnreadableFile as error:
            report.find(str(error))
    if len(report.problems) == before:
        report.see(f"All {len(sums)} files have the SHA-256 that SHA256SUMS lists.")
    return sums


class Chain:
    """The audit chain: facts of the entries that a check needs, and its end."""

    def __init__(self) -> None:
        self.entries, self.hmac, self.keyless, self.withheld = 0, "", "", 0
        self.project: str | None = None
        self.by_kind: dict[str, list[Row]] = defaultdict(list)
        self.activations: list[Row] = []

    def add(self, entry: Row, report: Report) -> None:
        """Follow the chain by one entry."""
        n, body = self.entries + 1, entry["body"]
        if entry["n"] != n:
            report.find(f"Chain: entry {entry['n']} stands where entry {n} belongs.")
        if entry["prev"] != self.hmac:
            report.find(f"Chain: entry {n} does not follow the entry before it.")
        if body is None:
            self.withheld += 1
            digest = entry["body_sha256"]
        else:
            digest = sha256(body)
            self.read_body(n, read_object(body, f"the body of entry {n}"), report)
        text = f"{self.keyless}\n{entry['prev']}\n{digest}\n{entry['hash']}"
        self.entries, self.hmac, self.keyless = n, entry["hash"], sha256(text)

    def read_body(self, n: int, facts: Row, report: Report) -> None:
        """Compare what an entry says of itself and of all before it; keep its facts."""
        if facts.get("n") != n or facts.get("project") != (self.project or facts.get("project")):
            report.find(f"Chain: entry {n} says that it is another entry.")
        self.project = facts.get("project")
        if facts.get("chain_sha256") not in (None, self.keyless):
            report.find(f"Chain: what entry {n} says of all entries before it is not so.")
        if facts.get("kind") in ("decided", "classes", "grouped", "removed", "trained", MARKED):
            self.by_kind[facts["kind"]].append(facts)
        self.read_activation(facts)

    def read_activation(self, facts: Row) -> None:
        """Keep what an entry says of a version that was taken into use.

        In older versions every training took its model into use; their entries say no state.
        """
        if "activation" in facts:
            self.activations.append(facts["activation"])
        elif facts.get("kind") == "trained" and "state" not in facts:
            was = self.activations[-1]["version"] if self.activations else None
            row = {"n": len(self.activations) + 1, "version": facts["version"], "was": was}
            known = {"at_ns": facts["trained_ns"]} if "trained_ns" in facts else {}
            self.activations.append({**row, **known, "how": "migrated"})

    def salts(self) -> set[str]:
        """Return the names of the salts that digests of entries were made with."""
        return {facts["salted"]["salt"] for kind in self.by_kind.values() for facts in kind
                if "salted" in facts}  # fmt: skip


def check_chain(pack: Pack, report: Report) -> Chain:
    """Follow the chain from its beginning."""
    chain, before = Chain(), len(report.problems)
    for entry in pack.lines("chain.jsonl"):
        chain.add(entry, report)
    if len(report.problems) == before:
        report.see(
            f"The audit chain has {chain.entries:,} entries without a gap, and each follows "
            "the one before it."
        )
    if chain.withheld:
        report.see(
            f"The bodies of {chain.withheld:,} entries are withheld, since they name nodes; their "
            "hashes are part of the chain."
        )
    return chain


def check_manifest(
    pack: Pack, chain: Chain, sums: dict[str, str], runs: dict[int, Row], report: Report
) -> None:
    """Compare what manifest.json says of the pack with what is in it: chain, runs, files."""
    manifest, before = pack.read_json(MANIFEST), len(report.problems)
    ends = {"entries": chain.entries, "hash": chain.hmac or None,
            "chain_sha256": chain.keyless or None}  # fmt: skip
    for name, value in ends.items():
        said = manifest["chain"][name]
        if said != value:
            report.find(
                f"Manifest: {name} of the chain's end is {said}, in chain.jsonl it is {value}: the "
                "chain was cut off or added to."
            )
    if manifest["project"] != chain.project:
        report.find(f"Manifest: project {manifest['project']}, the chain has {chain.project}.")
    if manifest["runs"] != sorted(runs):
        report.find(
            f"Manifest: it lists {len(manifest['runs'])} runs ({shorten(manifest['runs'])}), in "
            f"the period the chain has {len(runs)} ({shorten(sorted(runs))})."
        )
    salts = chain.salts()
    if manifest["keys"] == "salted" and salts and manifest["salt"] not in salts:
        report.find("Manifest: its salt is not the one that the chain's digests were made with.")
    listed = {name: digest for name, digest in sums.items() if name != MANIFEST}
    said = manifest["files"]
    for name in sorted({*said, *listed}):
        if said.get(name) != listed.get(name):
            report.find(f"Manifest: {name} is not the file, or not of the SHA-256, that it lists.")
    if len(report.problems) == before:
        report.see(
            f"manifest.json has the end of the chain (entry {chain.entries:,}), the {len(runs):,} "
            f"runs and the {len(said):,} files that are here."
        )


def shorten(values: Sequence[Any]) -> str:
    """Return the first of some values in words."""
    return ", ".join(map(str, values[:MAX_NAMED])) + (" …" if len(values) > MAX_NAMED else "")


def check_promotions(pack: Pack, chain: Chain, report: Report) -> None:
    """Compare which model version was in use when, by whom and why, with the chain."""
    said = {row["n"]: row for row in pack.read_json(PROMOTIONS)}
    sealed, before = {row["n"]: row for row in chain.activations}, len(report.problems)
    for n in sorted({*said, *sealed}):
        if n not in said or n not in sealed:
            where = f"not in {PROMOTIONS}" if n not in said else "not in the chain"
            report.find(f"Change {n} of the version in use is {where}.")
            continue
        row = {**said[n], **sealed[n]}
        at = datetime.fromtimestamp(row["at_ns"] // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        expected = {**sealed[n], "at": at, "words": name_reason(row["reason"], row["actor"])}
        changed = [name for name, value in expected.items() if said[n].get(name) != value]
        if changed:
            report.find(
                f"Change {n} of the version in use: {', '.join(sorted(changed))} is not what the "
                "chain sealed."
            )
    if len(report.problems) == before:
        report.see(
            f"{len(said):,} changes of the version in use are those that the chain sealed, with "
            "who made them and why."
        )


def name_reason(reason: str, actor: str) -> str:
    """Return why a version was taken into use, and by whom, as promotions.json says it."""
    try:
        who = json.loads(actor)
    except ValueError:
        who = actor
    if not who:
        return reason
    if not isinstance(who, dict):
        return f"{reason} (by {who})"
    user = f"{who['user']}, " if who.get("user") else ""
    return f"{reason} (by {user}{who.get('host', '')}, ringfence {who.get('verb', '')})"


def check_cards(pack: Pack, chain: Chain, report: Report) -> None:
    """Compare the manifest in each model's card with the one that its training sealed."""
    names, before, untied = set(pack.names()), len(report.problems), 0
    trained = {facts["version"]: facts["manifest_sha256"] for facts in chain.by_kind["trained"]}
    cards = {f"{CARDS}{version}.json": version for version in trained}
    for name in sorted(names):
        if name.startswith(CARDS) and name.endswith(".json") and name not in cards and (
            name.removesuffix(MANIFEST_OF_MODEL) + ".json" not in cards
        ):  # fmt: skip
            report.find(f"{name} is about a model that the chain has not.")
    for name, version in sorted(cards.items()):
        if name not in names:
            report.find(f"Model {version} was trained, but its card {name} is not in the pack.")
            continue
        card, text = pack.read_json(name), f"{CARDS}{version}{MANIFEST_OF_MODEL}"
        if text not in names:
            untied += 1  # a pack of an older version
        elif sha256(pack.read(text)) != trained[version]:
            report.find(f"{text} is not the manifest that the training of {version} sealed.")
        elif card["manifest"] != pack.read_json(text) or card["version"] != version:
            report.find(f"{name} has another manifest than the training of {version} sealed.")
    if len(report.problems) == before and len(cards) > untied:
        report.see(
            f"The manifests of {len(cards) - untied:,} model versions (data, classes, network, "
            "promise, metrics of the training) are those that the chain sealed."
        )
    if untied:
        report.skip(f"Manifests of {untied:,} models: an older version packed no text of them.")


def name_uncompared(pack: Pack, report: Report) -> None:
    """Name the files that were compared with SHA256SUMS and with nothing else."""
    rest = sorted(set(pack.names()) - pack.compared - UNLISTED)
    folders = Counter(f"{name.partition('/')[0]}/" if "/" in name else name for name in rest)
    listed = ", ".join(
        name if count == 1 and not name.endswith("/") else f"{count} in {name}"
        for name, count in sorted(folders.items())
    )
    if rest:
        report.skip(
            f"The content of {len(rest)} files, of which only the SHA-256 was compared: {listed}. "
            "Of a model's card only its manifest was: not what happened since."
        )


def in_period(manifest: Row, at_ns: int) -> bool:
    """Whether a moment lies in the period of a pack."""
    period = manifest["period"]
    start, end = period["from_ns"], period["until_ns"]
    return (start is None or at_ns >= start) and (end is None or at_ns < end)


def read_labels(
    pack: Pack, chain: Chain, manifest: Row, runs: dict[int, Row], report: Report
) -> dict[str, str]:
    """Compare the classes that became known with the chain; return the newest of each node."""
    first = min((run["run"]["decided_ns"] for run in runs.values()), default=None)
    blocks: dict[int, list[Row]] = defaultdict(list)
    newest: dict[str, tuple[int, str]] = {}
    for row in pack.lines("labels.jsonl.gz"):
        blocks[row["noticed_ns"]].append(row)
        newest[row["key"]] = max(newest.get(row["key"], (0, "")), (row["noticed_ns"], row["label"]))
    sealed: dict[int, list[Row]] = defaultdict(list)
    for facts in chain.by_kind["classes"]:
        if first is not None and facts["noticed_ns"] >= first:
            sealed[facts["noticed_ns"]].append(facts)
    before, untied = len(report.problems), 0
    for noticed_ns in sorted({*sealed, *blocks}):
        where = f"Classes noticed at {noticed_ns}"
        entries, rows = sealed.get(noticed_ns, []), blocks.get(noticed_ns, [])
        if sum(facts["nodes"] for facts in entries) != len(rows):
            nodes = sum(facts["nodes"] for facts in entries)
            report.find(f"{where}: {len(rows)} are in the pack, the chain has {nodes}.")
            continue
        fits = compare_labels(rows, entries[0], manifest["keys"]) if len(entries) == 1 else None
        if fits is None:
            untied += len(rows)
        elif not fits:
            report.find(f"{where}: they are not those that the chain sealed.")
    if len(report.problems) == before:
        count = sum(map(len, blocks.values()))
        report.see(
            f"{count - untied:,} classes that became known since the first of these runs are those "
            "that the chain sealed; none is missing."
        )
    if untied:
        report.skip(
            f"{untied:,} classes: entries of older versions have no digest for such a pack."
        )
    return {key: label for key, (_, label) in newest.items()}


def compare_labels(rows: list[Row], facts: Row, keys: str) -> bool | None:
    """Return whether the chain has these classes; None where an older entry can't tell."""
    columns = ("label", "happened_ns", "covered", "covered_naive", "unseen")
    listed = [[row["key"], *(row[name] for name in columns)] for row in rows]
    if keys == "salted":
        digest = facts.get("salted", {}).get("rows")
        return None if digest is None else hash_set(map(row_hash, listed)) == digest
    listed.sort(key=lambda row: row[0])
    if "rows" in facts:
        return bool(sha256("".join(map(canonical, listed))) == facts["rows"])
    return bool(sha256("".join(canonical(row[:2]) for row in listed)) == facts["classes"])


def read_groups(
    pack: Pack, chain: Chain, manifest: Row, runs: dict[int, Row], report: Report
) -> dict[str, list[str]]:
    """Compare the groups of nodes with the chain; return them by run and node."""
    by_run: dict[int, list[list[str]]] = defaultdict(list)
    for row in pack.lines("groups.jsonl.gz"):
        by_run[row["run"]].append([row["key"], row["property"], row["value"]])
    sealed = {facts["seq"]: facts for facts in chain.by_kind["grouped"]}
    before, untied = len(report.problems), 0
    for seq in sorted({*by_run, *(seq for seq in sealed if seq in runs)}):
        rows, facts = by_run.get(seq, []), sealed.get(seq)
        if facts is None or (manifest["keys"] == "salted" and "salted" not in facts):
            untied += len(rows)
        elif manifest["keys"] == "salted":
            if hash_set(map(row_hash, rows)) != facts["salted"]["groups"]:
                report.find(f"Run {seq}: its groups are not those that the chain sealed.")
        elif sha256("".join(canonical(row) for row in sorted(rows))) != facts["groups"]:
            report.find(f"Run {seq}: its groups are not those that the chain sealed.")
    count = sum(map(len, by_run.values()))
    if count and len(report.problems) == before:
        report.see(f"{count - untied:,} groups of nodes are those that the chain sealed.")
    if untied:
        report.skip(
            f"{untied:,} groups of nodes, of which the chain has no digest for such a pack."
        )
    groups: dict[str, list[str]] = defaultdict(list)
    for rows in by_run.values():
        for key, name, value in rows:
            groups[key].append(f"{name}={value}")
    return groups


class RunDigests:
    """The digests over the predictions of one run, as the chain has them."""

    def __init__(self, salted: bool) -> None:
        self.salted, self.count = salted, 0
        self.rows: list[bytes] = []
        self.sampled: list[str] = []
        self.listed, self.list_rows = 0, list[bytes]()
        self.payload, self.degrees, self.bands, self.lists = (hashlib.sha256() for _ in range(4))

    def add(self, row: Row) -> None:
        """Add the next prediction."""
        self.count += 1
        if row.get("sampled"):
            self.sampled.append(row["key"])
        lists = [row["key"], row.get("lists")]
        self.listed += lists[1] is not None
        if self.salted:
            self.list_rows.append(row_hash(lists))
        self.lists.update(canonical(lists).encode("utf-8", "surrogatepass"))
        columns = [row[name] for name in ("key", "classes", "p_values", "scores")]
        if self.salted:
            self.rows.append(row_hash([*columns, row["degree"], row["band"]]))
            return
        for digest, values in (
            (self.payload, columns),
            (self.degrees, [row["key"], row["degree"]]),
            (self.bands, [row["key"], row["band"]]),
        ):
            digest.update(canonical(values).encode("utf-8", "surrogatepass"))

    def compare(self, facts: Row, removed: Row | None) -> bool | None:
        """Return True where the chain has these predictions, False, or None where it can't tell."""
        if self.salted:
            sealed = None if removed else facts.get("salted", {}).get("predictions")
            return None if sealed is None else hash_set(self.rows) == sealed
        bands = self.bands.hexdigest()
        return bool(
            self.payload.hexdigest() == (removed["kept"] if removed else facts["predictions"])
            and facts.get("degrees", self.degrees.hexdigest()) == self.degrees.hexdigest()
            and facts.get("bands", bands) == bands
        )

    def compare_sample(self, facts: Row) -> bool | None:
        """Return True where the chain has this audit sample, False, or None if it can't tell."""
        sealed = facts.get("sample", {"nodes": 0})
        if len(self.sampled) != sealed["nodes"]:
            return False
        if not self.sampled:
            return True
        if self.salted:
            digest = facts.get("salted", {}).get("sample")
            rows = [row_hash([key]) for key in self.sampled]
            return None if digest is None else hash_set(rows) == digest
        return sha256(canonical(sorted(self.sampled))) == str(sealed["keys"])

    def compare_lists(self, facts: Row) -> bool:
        """Return whether the nodes on lists are those of the chain; older runs have none."""
        if self.listed != facts.get("listed_nodes", 0):
            return False
        digest = hash_set(self.list_rows) if self.salted else self.lists.hexdigest()
        sealed = facts.get("salted", {}) if self.salted else facts
        return self.listed == 0 or digest == sealed.get("listed")


def check_samples(digests: dict[int, RunDigests], runs: dict[int, Row], report: Report) -> None:
    """Compare the nodes that are marked as audit samples with those that the chain sealed."""
    fits = {seq: digests[seq].compare_sample(facts) for seq, facts in sorted(runs.items())}
    for seq in (seq for seq, fit in fits.items() if fit is False):
        report.find(f"Run {seq}: its audit sample is not the one that the chain sealed.")
    drawn = sum(len(digests[seq].sampled) for seq, fit in fits.items() if fit)
    if drawn:
        report.see(f"{drawn:,} nodes of the audit sample are those that the chain sealed.")
    if None in fits.values():
        report.skip("Audit samples of which the chain has no digest for a pack with salted keys.")


def check_runs(
    pack: Pack,
    chain: Chain,
    manifest: Row,
    runs: dict[int, Row],
    known: tuple[dict[str, str], dict[str, list[str]]],
    report: Report,
) -> Counts:
    """Compare the predictions with the chain, and count coverage anew."""
    removed = {run["seq"]: run for facts in chain.by_kind["removed"] for run in facts["runs"]}
    digests = {seq: RunDigests(manifest["keys"] == "salted") for seq in runs}
    labels, groups = known
    counts: Counts = defaultdict(lambda: [0] * len(COUNTS))
    on_lists: ListCounts = defaultdict(Counter)
    foreign: set[int] = set()
    doubled: set[str] = set()
    keys: set[str] = set()
    for row in pack.lines("predictions.jsonl.gz"):
        seq, key = row["run"], row["key"]
        if seq not in runs:
            foreign.add(seq)
            continue
        (doubled if key in keys else keys).add(key)
        digests[seq].add(row)
        count_row(counts, row, runs[seq]["run"], labels.get(key), groups.get(key, ()))
        count_lists(on_lists, row, labels.get(key))
    check_lists(pack, on_lists, runs, report)
    for seq in sorted(foreign):
        report.find(f"Run {seq} has predictions in the pack, but was not decided in its period.")
    for key in sorted(doubled)[:MAX_NAMED]:
        report.find(f"Node {key} has more than one prediction.")
    check_samples(digests, runs, report)
    before, untied = len(report.problems), []
    for seq, facts in sorted(runs.items()):
        fits, decided = digests[seq].compare(facts, removed.get(seq)), facts["run"]["n_evaluated"]
        if digests[seq].count != decided:
            report.find(f"Run {seq}: {digests[seq].count} predictions, but {decided} were decided.")
        elif fits is False:
            report.find(f"Run {seq}: its predictions are not those that the chain sealed.")
        elif not digests[seq].compare_lists(facts):
            report.find(f"Run {seq}: its lists hold other nodes than the chain sealed.")
        elif fits is None:
            untied.append(seq)
    if runs and len(report.problems) == before:
        tied = sum(digests[seq].count for seq in runs if seq not in untied)
        report.see(
            f"{len(runs):,} runs were decided in the period (run {min(runs)} to {max(runs)}); "
            f"{tied:,} predictions of {len(runs) - len(untied):,} of them are those that the chain "
            "sealed, and no run is missing."
        )
    if untied:
        report.skip(
            f"Predictions of {len(untied):,} runs ({shorten(untied)}): with salted keys they can "
            "be compared neither where an older version decided nor where details were removed."
        )
    return counts


def count_row(counts: Counts, row: Row, run: Row, label: str | None, groups: Sequence[str]) -> None:
    """Count one prediction in all, in its run, and in its class and groups."""
    covered = label is not None and label in row["classes"]
    slices = [("total", ""), ("run", str(row["run"])), *(("group", name) for name in groups)]
    if label is not None:
        slices.append(("class", label))
    if row.get("sampled"):
        slices.append(("sample", ""))
    for slice_, name in slices:
        sums = counts[slice_, name, run["model"], run["alpha"]]
        values = (1, label is not None, covered, len(row["classes"]))
        for place, value in enumerate(values):
            sums[place] += int(value)


def count_lists(counts: ListCounts, row: Row, label: str | None) -> None:
    """Count one prediction on each list that it is on, by its class."""
    for name in row.get("lists") or ():
        counts[row["run"], name][label] += 1


def check_lists(pack: Pack, counts: ListCounts, runs: dict[int, Row], report: Report) -> None:
    """Compare what each list holds, and how much of it is wrong, with what the pack says."""
    if LISTS not in pack.names():
        return  # a pack of an older version
    said = {(row["run"], row["list"]): row for row in pack.read_json(LISTS)["rows"]}
    before, totals = len(report.problems), Counter[tuple[str, str]]()
    for seq, facts in sorted(runs.items()):
        sealed = facts["run"].get("lists") or []
        for terms in json.loads(sealed) if isinstance(sealed, str) else sealed:
            name, here = terms["name"], counts.get((seq, terms["name"]), Counter())
            known = sum(nodes for label, nodes in here.items() if label is not None)
            wrong = sum(
                nodes for label, nodes in here.items()
                if label is not None and (label == terms["class_"]) == terms["is_clear"]
            )  # fmt: skip
            expected = {
                "run": seq, "list": name, "class": terms["class_"], "clears": terms["is_clear"],
                "may_be_wrong": terms["may_be_wrong"], "per": terms["per"],
                "listed": sum(here.values()), "known": known, "wrong": wrong,
            }  # fmt: skip
            there = said.pop((seq, name), None)
            if there is None:
                report.find(f"List {name} of run {seq}: not in {LISTS}.")
            for field in [] if there is None else expected:
                if there.get(field) != expected[field]:
                    report.find(
                        f"List {name} of run {seq}: {field} is {expected[field]}, {LISTS} says "
                        f"{there.get(field)}."
                    )
            totals.update({(name, "known"): known, (name, "wrong"): wrong})
    for seq, name in sorted(said):
        report.find(f"List {name} of run {seq}: {LISTS} has it, but the run decided no such list.")
    if len(report.problems) == before:
        for name in sorted({name for name, _ in totals}):
            known, wrong = totals[name, "known"], totals[name, "wrong"]
            share = f" ({100 * wrong / known:.1f} %)" if known else ""
            report.see(
                f"List {name}: {wrong:,} of {known:,} listed nodes of known class are wrong"
                f"{share}, counted again from predictions and classes."
            )


def check_coverage(pack: Pack, counts: Counts, report: Report) -> None:
    """Compare coverage as it was counted here with what the pack says."""
    said: Counts = {}
    for row in pack.read_json("coverage.json")["rows"]:
        key = (row["slice"], row["name"], row["model"], row["alpha"])
        said[key] = [row[name] for name in COUNTS]
    before = len(report.problems)
    for key in sorted({*said, *counts}, key=str):
        slice_, name, model, alpha = key
        where = f"Coverage, {slice_} {name} of model {model} at alpha {alpha}".replace("  ", " ")
        here, there = counts.get(key), said.get(key)
        if there is None:
            report.find(f"{where}: not in coverage.json.")
        elif here is None:
            report.find(f"{where}: nothing in the predictions.")
        else:
            for count, ours, theirs in zip(COUNTS, here, there, strict=True):
                if ours != theirs:
                    report.find(f"{where}: {count} is {ours:,}, coverage.json says {theirs:,}.")
    if len(report.problems) == before:
        kinds = Counter(key[0] for key in said)
        report.see(
            f"Coverage was counted again from predictions and classes: {kinds['run']:,} runs, "
            f"{kinds['class']:,} classes, {kinds['group']:,} groups, as coverage.json says."
        )
    for key in sorted(counts, key=str):
        if key[0] == "sample":
            drawn, known, covered = counts[key][:3]
            report.see(
                f"Audit sample of model {key[2]} at alpha {key[3]}: {covered:,} of {known:,} nodes "
                f"of known class have it in their set; {drawn - known:,} of {drawn:,} are unknown."
            )
        if key[0] == "total":
            _, known, covered = counts[key][:3]
            share = f" ({100 * covered / known:.1f} %)" if known else ""
            report.see(
                f"Model {key[2]} at alpha {key[3]}: {covered:,} of {known:,} nodes of known class "
                f"have it in their set{share}."
            )


def check_marks(pack: Pack, chain: Chain, manifest: Row, report: Report) -> None:
    """Compare what people did with nodes with the chain, and count what came out."""
    if MARKS not in pack.names():
        return  # a pack of an older version
    rows = {row["n"]: row for row in pack.lines(MARKS)}
    ended: dict[str, str | None] = {}
    for _, row in sorted(rows.items()):
        if row["action"] != "note":
            ended[row["key"]] = row["outcome"] or "done" if row["action"] == "done" else None
    counts = Counter(outcome for outcome in ended.values() if outcome)
    said = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items()))
    if manifest["keys"] == "salted":
        report.skip(
            f"{len(rows):,} marks of people ({said or 'no outcome'}): with salted keys the chain's "
            "entries of them are withheld."
        )
        return
    sealed = {facts["mark"]["n"]: facts["mark"] for facts in chain.by_kind[MARKED]}
    before = len(report.problems)
    for n in sorted({*rows, *sealed}):
        here, there = rows.get(n), sealed.get(n)
        if here is None or there is None:
            where = "in the pack" if here is None else "in the chain"
            report.find(f"Mark {n} is not {where}.")
        elif changed := [
            name for name, value in here.items()
            if there.get("node_key" if name == "key" else name) != value
        ]:  # fmt: skip
            report.find(f"Mark {n}: {', '.join(sorted(changed))} is not what the chain sealed.")
    if len(report.problems) == before:
        report.see(
            f"{len(rows):,} marks of people are those that the chain sealed "
            f"({said or 'no outcome'})."
        )


def check_signature(pack: Pack, chain: Chain, public_key: str | None, report: Report) -> None:
    """Compare the signed head with chain and sums, and the signature with the public key."""
    names = pack.names()
    if "head.json" not in names:
        sentence = (
            "The pack is not signed: nothing ties it to a public key, and nothing tells that its "
            "newest entries were cut off if manifest.json was edited with them."
        )
        (report.find if public_key else report.skip)(sentence)
        return
    text = pack.read("head.json")
    signed = pack.read_json("head.json")
    actual = {
        "chain_sha256": chain.keyless,
        "entries": chain.entries,
        "hmac_head": chain.hmac,
        "sums_sha256": sha256(pack.read("SHA256SUMS")),
    }
    if sorted(signed) != sorted(SIGNED_FIELDS):
        report.find("head.json has other fields than a signed head has.")
    for name, value in actual.items():
        if signed.get(name) != value:
            report.find(f"The signed head was made over another pack: {name} differs.")
    given = signed["public_key"] if public_key is None else public_key
    if signed["public_key"] != given:
        report.find("The pack was signed with another key than the one that was given.")
    if parse_public_key(pack.read("public_key.pem").decode()) != signed["public_key"]:
        report.find("public_key.pem is not the key that head.json names.")
    verify_signature(text, pack.read("head.json.sig"), signed["public_key"], report)
    if public_key is None:
        report.skip(
            "Whose key it is: compare it with one that you got another way (ringfence key show), "
            "or give it with --public-key. It is " + signed["public_key"]
        )


def verify_signature(text: bytes, signature: bytes, public_key: str, report: Report) -> None:
    """Check an Ed25519 signature where `cryptography` is installed; else print a command."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        report.skip(
            "The signature: the Python package cryptography is not installed. In the unpacked "
            "folder: openssl pkeyutl -verify -pubin -inkey public_key.pem -rawin -in head.json "
            "-sigfile head.json.sig"
        )
        return
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(signature, text)
    except InvalidSignature:
        report.find("The signature does not fit head.json and the public key.")
    else:
        report.see(
            f"The signature of key {public_key[:16]}… over the chain's head and all files fits."
        )


def read_public_key(given: str) -> str:
    """Return a public key as hex: from hex, from PEM, or from a file that holds one of them."""
    try:
        return parse_public_key(given)
    except ValueError:
        with reading(given):
            return parse_public_key(Path(given).read_text(encoding="ascii"))


def parse_public_key(text: str) -> str:
    """Return the public key, as hex, that a text holds as hex or PEM."""
    if re.fullmatch(r"[0-9a-fA-F]{64}", text.strip()):
        return text.strip().lower()
    if "BEGIN PUBLIC KEY" not in text:
        raise ValueError("it holds no public key, as hex or PEM")
    lines = [line for line in text.splitlines() if line and "-----" not in line]
    return base64.b64decode("".join(lines))[-32:].hex()


def check_time_stamp(pack: Pack, report: Report) -> None:
    """Compare the hash in the time stamp; say how openssl checks the authority's signature."""
    if "head.json.tsr" not in pack.names():
        return
    digest, stamp = hashlib.sha256(pack.read("head.json")).digest(), pack.read("head.json.tsr")
    if any(imprint + digest in stamp for imprint in IMPRINTS):
        report.see("The time stamp is about the SHA-256 of head.json.")
    else:
        report.find("The time stamp is not about head.json: it has not its SHA-256.")
    report.skip(
        "The signature of the time stamp: in the unpacked folder, with the certificate of the "
        "authority: openssl ts -verify -data head.json -in head.json.tsr -CAfile authority.pem; "
        "the time: openssl ts -reply -in head.json.tsr -text"
    )


def check_salt(manifest: Row, chain: Chain, salt: bytes, report: Report) -> None:
    """Compare a salt that was handed over with the one of the chain's digests."""
    name = sha256(b"ringfence key salt\n" + salt.strip())
    if manifest["keys"] != "salted":
        report.skip("The salt: this pack has plain keys.")
    elif chain.salts() != {name}:
        report.find("The salt is not the one that the chain's digests were made with.")
    else:
        report.see("The salt is that of the chain; a node's name is SHA-256(salt + its key).")


def check_pack(
    pack: Pack, public_key: str | None = None, salt: bytes | None = None
) -> tuple[Report, Chain]:
    """Make all checks; return the report and the chain. `public_key` is in hex."""
    report = Report()
    text = pack.read(MANIFEST)
    with reading(MANIFEST):
        manifest = read_object(text, "its text")
    sums: dict[str, str] = {}
    chain, runs, followed = Chain(), dict[int, Row](), False

    def follow() -> None:
        nonlocal chain, runs, followed
        chain = check_chain(pack, report)
        runs = {
            facts["run"]["seq"]: facts
            for facts in chain.by_kind["decided"]
            if in_period(manifest, facts["run"]["decided_ns"])
        }
        followed = True

    def count() -> None:
        labels = read_labels(pack, chain, manifest, runs, report)
        groups = read_groups(pack, chain, manifest, runs, report)
        counts = check_runs(pack, chain, manifest, runs, (labels, groups), report)
        check_coverage(pack, counts, report)
        check_marks(pack, chain, manifest, report)

    attempt("SHA256SUMS", lambda: sums.update(check_sums(pack, report)), report)
    attempt("The chain", follow, report)
    of_chain: dict[str, Callable[[], None]] = {
        "The manifest": lambda: check_manifest(pack, chain, sums, runs, report),
        "Predictions, classes and coverage": count,
        "The versions in use": lambda: check_promotions(pack, chain, report),
        "The models' cards": lambda: check_cards(pack, chain, report),
        "The signature": lambda: check_signature(pack, chain, public_key, report),
    }
    if salt is not None:
        of_chain["The salt"] = lambda: check_salt(manifest, chain, salt, report)
    for subject, check in of_chain.items():
        if followed:
            attempt(subject, check, report)
        else:
            report.skip(f"{subject}: the chain, with which it is compared, can't be read.")
    attempt("The time stamp", lambda: check_time_stamp(pack, report), report)
    name_uncompared(pack, report)
    return report, chain


def attempt(subject: str, check: Callable[[], None], report: Report) -> None:
    """Make a check; what can't be read is a sentence of the report."""
    try:
        check()
    except UnreadableFile as error:
        report.find(str(error))
    except UNREADABLE as error:
        report.find(
            f"{subject}: a value is missing or is not what a pack has there "
            f"({type(error).__name__}: {error})."
        )


def as_line(sentence: str) -> str:
    """Return a sentence as one line without control characters: it may quote a forger's text."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in sentence
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the pack that the command line names."""
    parser = argparse.ArgumentParser(description="Check an audit pack of ringfence.")
    parser.add_argument("pack", help="the .zip file, or the folder that it was unpacked to")
    parser.add_argument("--public-key", help="the maker's public key: hex, PEM, or a file of it")
    parser.add_argument("--salt", help="the file with the salt, of a pack with salted keys")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not have every sign
    try:
        public_key = None if asked.public_key is None else read_public_key(asked.public_key)
        with reading(asked.salt or ""):
            salt = None if asked.salt is None else Path(asked.salt).read_bytes()
    except UnreadableFile as error:
        print(as_line(str(error)), file=sys.stderr)
        return 2
    try:
        report, chain = check_pack(Pack(asked.pack), public_key, salt)
    except UnreadableFile as error:
        print(as_line(f"{asked.pack} is no audit pack: {error}"), file=sys.stderr)
        return 2
    head = f"entry {chain.entries} of the audit chain, keyless hash {chain.keyless}"
    if asked.json:
        body = {"sound": not report.problems, "problems": report.problems, "seen": report.seen,
                "unchecked": report.unchecked, "head": head}  # fmt: skip
        print(json.dumps(body, indent=1))
    else:
        for label, sentences in (
            ("fits:        ", report.seen),
            ("not checked: ", report.unchecked),
            ("DOES NOT FIT: ", report.problems),
        ):
            for sentence in sentences:
                print(label + as_line(sentence))
        verdict = "Something does not fit." if report.problems else "Everything checked fits."
        print(f"{verdict} The pack ends with {head}.")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
