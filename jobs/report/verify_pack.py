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
import json
import re
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

Row = dict[str, Any]
Counts = dict[tuple[str, str, str, float], list[int]]
ListCounts = dict[tuple[int, str], Counter[str | None]]

UNLISTED = {"SHA256SUMS", "head.json", "head.json.sig", "head.json.tsr", "public_key.pem"}
MAX_NAMED = 5
MARKED, MARKS, LISTS = "marked node", "marks.jsonl.gz", "lists.json"
COUNTS = ("evaluated", "known", "covered", "classes_in_sets")
SIGNED_FIELDS = ("chain_sha256", "entries", "hmac_head", "project", "public_key", "sums_sha256")


class Pack:
    """The files of a pack: a zip archive, or the folder that it was unpacked to."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.archive = None if self.path.is_dir() else zipfile.ZipFile(self.path)

    def names(self) -> list[str]:
        """Return the names of all files; one that an archive has twice is named twice."""
        if self.archive is not None:
            return [name for name in self.archive.namelist() if not name.endswith("/")]
        files = (path for path in self.path.rglob("*") if path.is_file())
        return sorted(path.relative_to(self.path).as_posix() for path in files)

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading."""
        return (self.path / name).open("rb") if self.archive is None else self.archive.open(name)

    def read(self, name: str) -> bytes:
        """Return a small file whole."""
        with self.open(name) as file:
            return file.read()

    def lines(self, name: str) -> Iterator[Row]:
        """Yield the JSON objects of a file with one in each line, gzipped or not."""
        with self.open(name) as file:
            text: Iterable[bytes] = gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file
            for line in text:
                yield json.loads(line)


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


def check_sums(pack: Pack, report: Report) -> None:
    """Compare every file with SHA256SUMS."""
    names, before = pack.names(), len(report.problems)
    for name, count in Counter(names).items():
        if count > 1:
            report.find(f"The archive has {count} files of the name {name}.")
    sums: dict[str, str] = {}
    for line in pack.read("SHA256SUMS").decode().splitlines():
        digest, _, name = line.partition("  ")
        sums[name] = digest
    for name in sorted(set(sums) - set(names)):
        report.find(f"{name} is listed in SHA256SUMS, but is not in the pack.")
    for name in sorted(set(names) - set(sums) - UNLISTED):
        report.find(f"{name} is in the pack, but not listed in SHA256SUMS.")
    for name in sorted(set(sums) & set(names)):
        if hash_file(pack, name) != sums[name]:
            report.find(f"{name} is not the file that SHA256SUMS lists: it was changed.")
    if len(report.problems) == before:
        report.see(f"All {len(sums)} files have the SHA-256 that SHA256SUMS lists.")


def hash_file(pack: Pack, name: str) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with pack.open(name) as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


class Chain:
    """The audit chain: facts of the entries that a check needs, and its end."""

    def __init__(self) -> None:
        self.entries, self.hmac, self.keyless, self.withheld = 0, "", "", 0
        self.project: str | None = None
        self.by_kind: dict[str, list[Row]] = defaultdict(list)

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
            self.read_body(n, json.loads(body), report)
        text = f"{self.keyless}\n{entry['prev']}\n{digest}\n{entry['hash']}"
        self.entries, self.hmac, self.keyless = n, entry["hash"], sha256(text)

    def read_body(self, n: int, facts: Row, report: Report) -> None:
        """Compare what an entry says of itself and of all before it; keep its facts."""
        if facts.get("n") != n or facts.get("project") != (self.project or facts.get("project")):
            report.find(f"Chain: entry {n} says that it is another entry.")
        self.project = facts.get("project")
        if facts.get("chain_sha256") not in (None, self.keyless):
            report.find(f"Chain: what entry {n} says of all entries before it is not so.")
        if facts.get("kind") in ("decided", "classes", "grouped", "removed", MARKED):
            self.by_kind[facts["kind"]].append(facts)


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
        found = hash_set(self.list_rows) if self.salted else self.lists.hexdigest()
        sealed = facts.get("salted", {}) if self.salted else facts
        return self.listed == 0 or found == sealed.get("listed")


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
        listed = ", ".join(map(str, untied[:MAX_NAMED])) + (" …" if len(untied) > MAX_NAMED else "")
        report.skip(
            f"Predictions of {len(untied):,} runs ({listed}): with salted keys they can be "
            "compared neither where an older version decided nor where details were removed."
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
    said = {(row["run"], row["list"]): row for row in json.loads(pack.read(LISTS))["rows"]}
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
    for row in json.loads(pack.read("coverage.json"))["rows"]:
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
        sentence = "The pack is not signed: nothing ties it to a public key."
        (report.find if public_key else report.skip)(sentence)
        return
    text = pack.read("head.json")
    signed = json.loads(text)
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
    given = signed["public_key"] if public_key is None else read_public_key(public_key)
    if signed["public_key"] != given:
        report.find("The pack was signed with another key than the one that was given.")
    if read_public_key(pack.read("public_key.pem").decode()) != signed["public_key"]:
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


def read_public_key(text: str) -> str:
    """Return a public key as hex: from hex, from PEM, or from a file that holds one of them."""
    if re.fullmatch(r"[0-9a-fA-F]{64}", text.strip()):
        return text.strip().lower()
    if "BEGIN PUBLIC KEY" in text:
        lines = [line for line in text.splitlines() if line and "-----" not in line]
        return base64.b64decode("".join(lines))[-32:].hex()
    return read_public_key(Path(text).read_text(encoding="ascii"))


def check_time_stamp(pack: Pack, report: Report) -> None:
    """Say how the time stamp is checked: by openssl, with the certificate of the authority."""
    if "head.json.tsr" in pack.names():
        report.skip(
            "The time stamp: in the unpacked folder, with the certificate of the authority: "
            "openssl ts -verify -data head.json -in head.json.tsr -CAfile authority.pem; the time: "
            "openssl ts -reply -in head.json.tsr -text"
        )


def check_salt(manifest: Row, chain: Chain, salt_file: str, report: Report) -> None:
    """Compare a salt that was handed over with the one of the chain's digests."""
    salt = Path(salt_file).read_bytes().strip()
    name = sha256(b"ringfence key salt\n" + salt)
    used = {facts["salted"]["salt"] for kind in chain.by_kind.values() for facts in kind
            if "salted" in facts}  # fmt: skip
    if manifest["keys"] != "salted":
        report.skip("The salt: this pack has plain keys.")
    elif used != {name}:
        report.find("The salt is not the one that the chain's digests were made with.")
    else:
        report.see("The salt is that of the chain; a node's name is SHA-256(salt + its key).")


def check_pack(
    pack: Pack, public_key: str | None = None, salt: str | None = None
) -> tuple[Report, Chain]:
    """Make all checks; return the report and the chain."""
    report, chain = Report(), Chain()
    manifest = json.loads(pack.read("manifest.json"))
    state: dict[str, Any] = {}

    def counted() -> None:
        chain_, runs = state["chain"], state["runs"]
        labels = read_labels(pack, chain_, manifest, runs, report)
        groups = read_groups(pack, chain_, manifest, runs, report)
        counts = check_runs(pack, chain_, manifest, runs, (labels, groups), report)
        check_coverage(pack, counts, report)
        check_marks(pack, chain_, manifest, report)

    def chained() -> None:
        state["chain"] = check_chain(pack, report)
        state["runs"] = {
            facts["run"]["seq"]: facts
            for facts in state["chain"].by_kind["decided"]
            if in_period(manifest, facts["run"]["decided_ns"])
        }

    checks: dict[str, Callable[[], None]] = {
        "SHA256SUMS": lambda: check_sums(pack, report),
        "the chain": chained,
        "predictions, classes and coverage": counted,
        "the signature": lambda: check_signature(pack, state["chain"], public_key, report),
        "the time stamp": lambda: check_time_stamp(pack, report),
    }
    if salt is not None:
        checks["the salt"] = lambda: check_salt(manifest, state["chain"], salt, report)
    for subject, check in checks.items():
        try:
            check()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, EOFError, OSError,
                zipfile.BadZipFile) as error:  # fmt: skip
            report.find(f"{subject} can't be read: {type(error).__name__} {error}")
    return report, state.get("chain", chain)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the pack that the command line names."""
    parser = argparse.ArgumentParser(description="Check an audit pack of ringfence.")
    parser.add_argument("pack", help="the .zip file, or the folder that it was unpacked to")
    parser.add_argument("--public-key", help="the maker's public key: hex, PEM, or a file of it")
    parser.add_argument("--salt", help="the file with the salt, of a pack with salted keys")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args(arguments)
    try:
        pack = Pack(asked.pack)
        report, chain = check_pack(pack, asked.public_key, asked.salt)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        print(f"{asked.pack} is no audit pack that can be read: {error}", file=sys.stderr)
        return 2
    head = f"entry {chain.entries} of the audit chain, keyless hash {chain.keyless}"
    if asked.json:
        body = {"sound": not report.problems, "problems": report.problems, "seen": report.seen,
                "unchecked": report.unchecked, "head": head}  # fmt: skip
        print(json.dumps(body, indent=1))
    else:
        for sentence in report.seen:
            print(f"fits:        {sentence}")
        for sentence in report.unchecked:
            print(f"not checked: {sentence}")
        for sentence in report.problems:
            print(f"DOES NOT FIT: {sentence}")
        verdict = "Something does not fit." if report.problems else "Everything checked fits."
        print(f"{verdict} The pack ends with {head}.")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
