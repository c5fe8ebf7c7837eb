"""`ringfence report --pack`: the whole audit as one archive, for a regulator or a model-risk team.

Everything comes from the audit store and the configuration; secrets are in neither. Equal content
gives equal bytes: entries are sorted, carry no time of writing, and pages say up to when the record
reaches in place of when they were written. `manifest.json` has the SHA-256 of every file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ringfence import __version__
from ringfence.connector.errors import ConfigError
from ringfence.connector.files import PRIVATE
from ringfence.connector.store import migrate
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.connector.store.retention.removals import Removal
from ringfence.connector.store.trail.integrity import record_snapshot
from ringfence.connector.times import format_time
from ringfence.jobs.config.settings import SECRETS, Settings
from ringfence.jobs.integrity.chain_check import chain_words
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.lifecycle.card import describe_use, read_card
from ringfence.jobs.lifecycle.card_page import as_html, as_json, as_markdown
from ringfence.jobs.project.audit_store import key_source, open_audit
from ringfence.jobs.report.pack_index import PackFacts, index_page
from ringfence.jobs.report.write import require_templates
from ringfence.jobs.views.tables import TABLES, as_csv

NO_TIME = (1980, 1, 1, 0, 0, 0)  # of every entry: the earliest that the format can say
MAX_PROBLEMS = 1_000


@dataclass(frozen=True, slots=True)
class PackFile:
    """What `ringfence report --pack` wrote; `sound` is None where the chain's key is elsewhere."""

    path: str
    files: int
    bytes: int
    sha256: str
    sound: bool | None
    verification: str


def run_pack(settings: Settings, path: Path) -> PackFile:
    """Write the archive; a file of that name is replaced once the new one is whole."""
    require_templates()
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(
            found=f"--pack {path} is a folder" if path.is_dir() else f"no folder {path.parent}",
            needed="the name of a file in a folder that exists",
            next_step="ringfence report --pack audit.zip",
        )
    with open_audit(settings) as store:
        migrate.require_sql(store)
        queries = ProjectQueries(store, settings.project).unlimited()
        verification = verify_record(queries, settings)
        files = pack_files(queries, settings, verification)
    blob = zip_bytes(files)
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        partial.touch(mode=PRIVATE)
        partial.write_bytes(blob)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return PackFile(
        str(path),
        len(files),
        len(blob),
        hashlib.sha256(blob).hexdigest(),
        verification["sound"],
        verification["sentence"],
    )


def pack_files(
    queries: ProjectQueries, settings: Settings, verification: Mapping[str, Any]
) -> dict[str, bytes]:
    """Return every file of the archive by its name."""
    from ringfence.jobs.report.page import html

    until_ns = last_entry_ns(queries)
    cards = [read_card(queries.store, queries.project, model.version) for model in queries.models()]
    files = {
        "report.html": html(queries, verification["sentence"], until_ns, of_record=True),
        "configuration.json": _json(open_settings(settings)),
        "promotions.json": _json(_promotions(queries)),
        "verification.json": _json(verification),
        "chain.jsonl": "".join(
            json.dumps(as_row(entry), ensure_ascii=True) + "\n" for entry in queries.whole_chain()
        ),
        **{f"tables/{name}.csv": as_csv(view.read(queries)) for name, view in TABLES.items()},
    }
    for card in cards:
        front = f"model-cards/{card.version}"
        files |= {
            f"{front}.html": as_html(card),
            f"{front}.md": as_markdown(card),
            f"{front}.json": as_json(card),
        }
    facts = PackFacts(
        queries.project,
        settings.audit.retention_days,
        first_entry_ns(queries),
        until_ns,
        len(cards),
        str(verification["sentence"]),
        settings.audit.keep_days,
        describe_removals(queries.removals()),
    )
    files["index.html"] = index_page(facts, sorted(files))
    packed = {name: text.encode() for name, text in files.items()}
    packed["manifest.json"] = _json(_manifest(queries, packed, until_ns)).encode()
    return packed


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    """Return the archive; the same files give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, NO_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = PRIVATE << 16
            entry.create_system = 3  # as on every system: Unix
            archive.writestr(entry, files[name])
    return out.getvalue()


def open_settings(settings: Settings) -> dict[str, Any]:
    """Return the configuration without secrets; addresses lose what may be one.

    A webhook's path often is a secret, and a URL may hold a password although it should not.
    """
    body = settings.model_dump(mode="json", exclude=SECRETS)
    body["alarms"]["webhook"] = _host_alone(body["alarms"]["webhook"])
    body["audit"]["url"] = _without_password(body["audit"]["url"])
    body["neo4j"]["uri"] = _without_password(body["neo4j"]["uri"])
    return body


def verify_record(queries: ProjectQueries, settings: Settings) -> dict[str, Any]:
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
    return {
        "sound": sound,
        "sentence": sentence,
        "problems": problems[:MAX_PROBLEMS],
        "not_compared": "the graph: ringfence verify compares it too",
    }


def describe_removals(removals: Sequence[Removal]) -> str:
    """Say what retention removed so far; empty where it removed nothing.

    >>> describe_removals([Removal(3, 0, 90.0, 500, 700, 0, 9000)])
    'Details of 500 nodes of 1 run (run 3) were removed, the last of them 1970-01-01 00:00:00Z.'
    """
    if not removals:
        return ""
    seqs = [one.seq for one in removals]
    which = f"run {seqs[0]}" if len(seqs) == 1 else f"runs {min(seqs)} to {max(seqs)}"
    return (
        f"Details of {sum(one.nodes for one in removals):,} nodes of {len(seqs):,} "
        f"run{'s' if len(seqs) > 1 else ''} ({which}) were removed, the last of them "
        f"{format_time(max(one.at_ns for one in removals))}."
    )


def first_entry_ns(queries: ProjectQueries) -> int | None:
    """Return the time of the first chain entry that has one."""
    return next((at for entry in queries.whole_chain() if (at := _entry_ns(entry.facts))), None)


def last_entry_ns(queries: ProjectQueries) -> int:
    """Return the time of the newest chain entry that has one; 0 where there is none."""
    times = [at for entry in queries.whole_chain() if (at := _entry_ns(entry.facts))]
    return max(times, default=0)


def _entry_ns(facts: Mapping[str, Any]) -> int | None:
    for name in ("at_ns", "decided_ns", "audited_ns", "trained_ns"):
        if isinstance(facts.get(name), int):
            return int(facts[name])
    return None


def _promotions(queries: ProjectQueries) -> list[dict[str, Any]]:
    return [
        as_row(one) | {"at": format_time(one.at_ns), "words": describe_use(one.reason, one.actor)}
        for one in queries.activations()
    ]


def _manifest(queries: ProjectQueries, files: Mapping[str, bytes], until_ns: int) -> dict[str, Any]:
    chain = queries.whole_chain()
    return {
        "project": queries.project,
        "software": f"ringfence {__version__}",
        "record_until": format_time(until_ns) if until_ns else None,
        "chain": {"entries": len(chain), "hash": chain[-1].hash if chain else None},
        "files": {
            name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())
        },
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False, default=str) + "\n"


def _host_alone(url: str | None) -> str | None:
    """Keep scheme and host of an address.

    >>> _host_alone("https://user:x@hooks.example.org/services/T0/SECRET?k=1")
    'https://hooks.example.org/…'
    """
    if not url:
        return url
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}/…"


def _without_password(url: str) -> str:
    """Take the password out of an address.

    >>> _without_password("postgresql+psycopg://me:secret@db/audit")
    'postgresql+psycopg://me@db/audit'
    """
    parts = urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username or ''}@{host}").geturl()
