"""`ringfence report --pack`: the audit as one archive, for a regulator or a model-risk team.

Everything comes from the audit store and the configuration; secrets are in neither. Rows go from
SQL into the archive block by block. Equal content gives equal bytes: members carry no time of
writing, and pages say how far the record reaches instead of when they were written. `SHA256SUMS`
has the hash of every file, and `verify_pack.py` checks the pack without anything of ours.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from ringfence import __version__
from ringfence.connector.errors import ConfigError
from ringfence.connector.files import write_atomically
from ringfence.connector.json_types import JsonObject
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store import migrate
from ringfence.connector.store.audit_chain.integrity import record_snapshot
from ringfence.connector.store.audit_chain.key_salt import read_salt, salt_id
from ringfence.connector.store.engine import Store
from ringfence.connector.store.models import manifest_of
from ringfence.connector.store.queries.period import PeriodRun, count_period
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.connector.store.retention.removals import Removal
from ringfence.connector.times import format_time
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.integrity.chain_check import chain_words
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.lifecycle.card import describe_use, read_card
from ringfence.jobs.lifecycle.card_page import as_html, as_json, as_markdown
from ringfence.jobs.project.audit_store import key_source, open_audit
from ringfence.jobs.report.open_settings import open_settings
from ringfence.jobs.report.pack_archive import SUMS_FILE, PackArchive, hash_file, new_archive
from ringfence.jobs.report.pack_index import PackFacts, index_page
from ringfence.jobs.report.pack_rows import (
    ChainEnd,
    plain_name,
    salted_name,
    withhold_words,
    write_chain,
    write_groups,
    write_labels,
    write_lists,
    write_marks,
    write_predictions,
    write_table,
)
from ringfence.jobs.report.pack_signature import Signer, find_signer, write_signature
from ringfence.jobs.report.period import Period, runs_of_period
from ringfence.jobs.report.write import require_templates
from ringfence.jobs.views.tables import TABLES

MAX_PROBLEMS = 1_000
SCRIPT = "verify_pack.py"
MANIFEST = "manifest.json"
TABLES_WITH_KEYS = ("quarantine", "corrections", "chain")  # left out where keys are salted


@dataclass(frozen=True, slots=True)
class PackFile:
    """What `ringfence report --pack` wrote; `sound` is None where the chain's key is elsewhere.

    `salt_file` is where the salt is that must be handed over apart; None with plain keys.
    `signed_by` is the public key, `time_stamp` the authority; None without.
    """

    path: str
    files: int
    bytes: int
    sha256: str
    sound: bool | None
    verification: str
    period: str
    runs: int
    predictions: int
    salt_file: str | None
    signed_by: str | None
    time_stamp: str | None


@dataclass(frozen=True, slots=True)
class PackRequest:
    """What a pack shall have: the runs of which period, keys as they are or salted hashes.

    It is signed where the project has a signing key, unless it shall be `unsigned`; `authority` is
    the address of who shall stamp it with the time.
    """

    period: Period = field(default_factory=Period)
    salted_keys: bool = False
    unsigned: bool = False
    authority: str | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """What the check of the record found when the archive was made; `sound` is None without key."""

    sound: bool | None
    sentence: str
    problems: Sequence[str]
    not_compared: str = (
        "the graph: ringfence verify compares it too; the random number u of each node: it follows "
        "from the seed key, which is in no pack and whose digest is in the model cards"
    )

    def without_keys(self) -> Verification:
        """Return the same without the sentences that may name nodes."""
        if not self.problems:
            return self
        count = f"CHANGED: {len(self.problems):,} differences; to see them: ringfence verify"
        return replace(self, sentence=count, problems=[count])


@dataclass(frozen=True, slots=True)
class _Making:
    """A pack that is being written, from a store in which all queries see one state."""

    archive: PackArchive
    store: Store
    settings: Settings
    request: PackRequest
    runs: Sequence[PeriodRun]
    salt: bytes | None
    verification: Verification
    signer: Signer | None

    @property
    def project(self) -> str:
        return self.settings.project

    def queries(self) -> ProjectQueries:
        """Return the project's queries, with histories of the period alone."""
        every = ProjectQueries(self.store, self.project).unlimited()
        period = self.request.period
        return every if period.is_whole else every.within(period.from_ns, period.until_ns)


def run_pack(
    settings: Settings,
    path: Path,
    request: PackRequest = PackRequest(),  # noqa: B008 - frozen
    progress: Progress = no_progress,
) -> PackFile:
    """Write the archive; a file of that name is replaced once the new one is whole."""
    require_templates()
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(
            found=f"--pack {path} is a folder" if path.is_dir() else f"no folder {path.parent}",
            needed="the name of a file in a folder that exists",
            next_step="ringfence report --pack audit.zip",
        )
    if request.unsigned and request.authority is not None:
        raise ConfigError(
            found="--unsigned together with --time-stamp",
            needed="a signed head that the authority can stamp",
            next_step="ringfence report --pack audit.zip --time-stamp https://…",
        )
    with open_audit(settings) as store:
        migrate.require_sql(store)
        with store.at_one_moment() as held:
            runs = runs_of_period(held, settings.project, request.period)
            salt = _read_salt(held, settings.project) if request.salted_keys else None
            signer = None if request.unsigned else find_signer(held, settings, request.authority)
            progress("record compared with the chain", 0, 0)
            verification = verify_record(ProjectQueries(held, settings.project), settings)
            if request.salted_keys:
                verification = verification.without_keys()
            with new_archive(path) as archive:
                making = _Making(archive, held, settings, request, runs, salt, verification, signer)
                predictions = write_pack(making, path, progress)
    salt_file = None if salt is None else _write_salt(path, salt)
    return PackFile(
        str(path),
        len(archive.sums),
        path.stat().st_size,
        hash_file(path),
        verification.sound,
        verification.sentence,
        request.period.sentence,
        len(runs),
        predictions,
        salt_file,
        None if signer is None else signer.key.public,
        None if signer is None else signer.authority,
    )


def write_pack(making: _Making, path: Path, progress: Progress) -> int:
    """Write every file of the archive; return how many predictions it has."""
    archive, project = making.archive, making.project
    name_of = plain_name if making.salt is None else salted_name(making.salt)
    since_ns = min((decided.decided_ns for decided in making.runs), default=0)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.parquet.tmp")
    store, runs = making.store, making.runs
    end = write_chain(archive, store, project, progress, withhold=making.salt is not None)
    try:
        predictions = write_predictions(archive, store, project, runs, name_of, scratch, progress)
    finally:
        scratch.unlink(missing_ok=True)
    write_labels(archive, store, project, since_ns, name_of, progress)
    write_groups(archive, store, project, runs, name_of, progress)
    write_lists(archive, store, project, runs)
    write_marks(archive, store, project, name_of, withhold=making.salt is not None)
    with store.reading() as connection:
        rows = count_period(connection, project, runs)
    coverage = {
        "period": making.request.period.as_json(),
        "counted": "nodes of the runs decided in the period, at each run's first alpha, with the "
        "classes that were known when the pack was made",
        "rows": [row.as_json() for row in rows],
    }
    archive.add_text("coverage.json", _json(coverage))
    _write_documents(making, end, progress)
    archive.add_text(MANIFEST, _json(_manifest(making, end)))
    sums = archive.sums_text()
    archive.add_text(SUMS_FILE, sums)
    if making.signer is not None:
        write_signature(archive, project, end, sums, making.signer)
    return predictions


def _write_documents(making: _Making, end: ChainEnd, progress: Progress) -> None:
    """Write what people read: pages, tables, cards, configuration, promotions, the script."""
    from ringfence.jobs.report.page import html

    archive, queries, settings = making.archive, making.queries(), making.settings
    left_out = TABLES_WITH_KEYS if making.salt is not None else ()
    without = (*left_out, "alarms") if left_out else ()  # what verifications found names nodes
    page = html(
        queries, making.verification.sentence, end.until_ns, of_record=True, without=without
    )
    archive.add_text("report.html", page)
    archive.add_text("configuration.json", _json(open_settings(settings)))
    archive.add_text("promotions.json", _json(_promotions(queries)))
    archive.add_text("verification.json", _json(asdict(making.verification)))
    for done, (name, view) in enumerate(TABLES.items(), start=1):
        if name not in left_out:
            blocks = view.blocks(queries)
            shown = blocks if making.salt is None else map(withhold_words, blocks)
            write_table(archive, view, shown)
        progress("tables packed", done, len(TABLES))
    models = queries.models()
    for done, model in enumerate(models, start=1):
        progress("model cards packed", done, len(models))
        card = read_card(queries.store, queries.project, model.version)
        front = f"model-cards/{card.version}"
        archive.add_text(f"{front}.html", as_html(card))
        archive.add_text(f"{front}.md", as_markdown(card))
        archive.add_text(f"{front}.json", as_json(card))
        text = manifest_of(queries.store, queries.project, card.version)
        archive.add_text(f"{front}.manifest.json", text)  # as its training sealed it, to the byte
    script = files("ringfence.jobs.report").joinpath(SCRIPT)
    archive.add_text(SCRIPT, script.read_text(encoding="utf-8"))
    facts = PackFacts(
        queries.project,
        settings.audit.retention_days,
        end.first_ns,
        end.until_ns,
        len(models),
        making.verification.sentence,
        settings.audit.keep_days,
        describe_removals(queries.removals()),
        f"Predictions and coverage of {len(making.runs):,} runs, decided "
        f"{making.request.period.sentence}.",
    )
    signature = set() if making.signer is None else making.signer.files
    names = sorted({*archive.sums, MANIFEST, SUMS_FILE} | signature)
    archive.add_text("index.html", index_page(facts, names))


def verify_record(queries: ProjectQueries, settings: Settings) -> Verification:
    """Compare every row of the audit store with the chain, as `ringfence verify` does."""
    sound, sentence = chain_words(queries, settings)
    problems: list[str] = []
    if sound is not None:
        with record_snapshot(queries.store, queries.project, key_source(settings)) as reader:
            problems = list(find_edits(reader, reader.record()))
        sound = not problems
    if sound:
        sentence = (
            f"All {queries.chain_length():,} entries of the audit chain fit, and every row of the "
            "audit store is as the chain has it."
        )
    elif problems:
        sentence = f"CHANGED: {problems[0]}" + (
            f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        )
    return Verification(sound, sentence, problems[:MAX_PROBLEMS])


def describe_removals(removals: Sequence[Removal]) -> str:
    """Say what retention removed so far; empty where it removed nothing.

    >>> describe_removals([Removal(3, 0, 90.0, 500, 700, 0, 9000)])
    'Details of 500 nodes of 1 run (run 3) were removed, the last of them 1970-01-01 00:00:00Z.'
    """
    if not removals:
        return ""
    seqs = [removal.seq for removal in removals]
    which = f"run {seqs[0]}" if len(seqs) == 1 else f"runs {min(seqs)} to {max(seqs)}"
    return (
        f"Details of {sum(removal.nodes for removal in removals):,} nodes of {len(seqs):,} "
        f"run{'s' if len(seqs) > 1 else ''} ({which}) were removed, the last of them "
        f"{format_time(max(removal.at_ns for removal in removals))}."
    )


def _promotions(queries: ProjectQueries) -> list[JsonObject]:
    return [
        as_row(activation)
        | {
            "at": format_time(activation.at_ns),
            "words": describe_use(activation.reason, activation.actor),
        }
        for activation in queries.activations()
    ]


def _manifest(making: _Making, end: ChainEnd) -> JsonObject:
    return {
        "project": making.project,
        "software": f"ringfence {__version__}",
        "record_until": format_time(end.until_ns) if end.until_ns else None,
        "period": making.request.period.as_json(),
        "runs": [decided.seq for decided in making.runs],
        "keys": "plain" if making.salt is None else "salted",
        "salt": None if making.salt is None else salt_id(making.salt),
        "chain": {
            "entries": end.entries,
            "hash": end.hmac or None,
            "chain_sha256": end.keyless or None,
        },
        "files": dict(sorted(making.archive.sums.items())),
    }


def _read_salt(store: Store, project: str) -> bytes:
    with store.reading() as connection:
        salt = read_salt(connection, project)
    if salt is None:
        raise ConfigError(
            found="--salted-keys, but no run on record was decided by a version that salts keys",
            needed="a run of this version, with which the salt is made",
            next_step="ringfence score",
        )
    return salt


def _write_salt(path: Path, salt: bytes) -> str:
    salt_file = path.with_suffix(".salt")
    write_atomically(salt_file, f"{salt.decode()}\n")
    return str(salt_file)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False, default=str) + "\n"
