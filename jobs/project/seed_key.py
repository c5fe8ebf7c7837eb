"""The seed key: the secret that every node's random number u is made with, and where it is.

    RINGFENCE_SEED_KEY                            counts before any file
    <folder>/projects/<project>/seed.key          made by the first training that needs one
    <folder>/projects/<project>/seed-<digest>.key an earlier key, which earlier versions still need

A version's manifest has the key's digest (`jobs.project.node_seed`). So a key is found by its
digest, and another one is refused.

The key is a whole number in hexadecimal digits and takes the seed's place in the keyed hash
(`models.hashing`). A key of zeros is seed 0, which everyone can guess: demo and tests use it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import string
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ringfence.connector.errors import ConfigError
from ringfence.connector.files import make_private_folder, sync_folder, write_once
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.audit_store import secret_text
from ringfence.jobs.project.folders import project_folder

VARIABLE = "RINGFENCE_SEED_KEY"
KEY_FILE = "seed.key"
KEY_BITS = 128
MIN_HEX_DIGITS, MAX_HEX_DIGITS = KEY_BITS // 4, 128
DIGEST_BYTES = 16
SHOWN_DIGEST_CHARS = 12
GUESSABLE_BELOW = 2**64  # such keys are plain seeds with zeros before them
MIN_DISTINCT_DIGITS = 7  # a random key has fewer in two of ten billion cases
MAKE_KEY = f"python -c 'import secrets; print(secrets.token_hex({KEY_BITS // 8}))'"
OTHERS_MAY_READ = 0o077


@dataclass(frozen=True, slots=True)
class SeedKey:
    """A seed key, and in words where it was found; the number is shown nowhere.

    >>> SeedKey(7, "a file")
    SeedKey(place='a file')
    """

    value: int = field(repr=False)
    place: str

    @property
    def digest(self) -> str:
        """A hash that names the key and does not give it away.

        >>> SeedKey(0, "").digest
        '07c31f06cc052288c74f5f3306f8eecf'
        """
        text = f"{self.value:x}".encode()
        return hashlib.blake2b(text, digest_size=DIGEST_BYTES, person=b"ringfence key").hexdigest()

    @property
    def name(self) -> str:
        """The digest's first characters, as messages have it."""
        return short_name(self.digest)

    @property
    def is_guessable(self) -> bool:
        """Whether the key is a small number or a pattern, and no random one."""
        digits = set(f"{self.value:x}")
        return self.value < GUESSABLE_BELOW or len(digits) < MIN_DISTINCT_DIGITS


def short_name(digest: str) -> str:
    """Return the first characters of a digest, as messages have it."""
    return f"{digest[:SHOWN_DIGEST_CHARS]}…"


def parse_seed_key(text: str, place: str) -> SeedKey:
    """Return the key of `text`; what can't be one is refused in words that don't repeat it.

    >>> parse_seed_key("00000000000000000000000000000007\\n", "a file").value
    7
    """
    digits = text.strip()
    if not set(digits) <= set(string.hexdigits):
        problem = f"the seed key in {place} has characters that are no hexadecimal digits"
    elif not MIN_HEX_DIGITS <= len(digits) <= MAX_HEX_DIGITS:
        problem = f"the seed key in {place} has {len(digits)} hexadecimal digits"
    else:
        return SeedKey(int(digits, 16), place)
    raise ConfigError(
        found=problem,
        needed=f"{MIN_HEX_DIGITS} to {MAX_HEX_DIGITS} hexadecimal digits ({KEY_BITS} bits or more; "
        "fewer can be guessed)",
        next_step=f"the key that the project's versions were trained with; a first one: {MAKE_KEY}",
    )


@dataclass(frozen=True, slots=True)
class SeedKeys:
    """Where the seed keys of a project may be; `folder` is the project's own."""

    configured: str | None = field(repr=False)
    folder: Path

    @property
    def file(self) -> Path:
        """The file of the key that new versions get."""
        return self.folder / KEY_FILE

    def current(self) -> SeedKey | None:
        """Return the key that counts for new versions; None where there is none."""
        if self.configured is not None:
            return parse_seed_key(self.configured, VARIABLE)
        return _read_key(self.file)

    def find(self, digest: str) -> SeedKey | None:
        """Return the key with a digest: the configured one, the file's, or an earlier one."""
        return next((key for key in self._all(digest) if key.digest == digest), None)

    def _all(self, digest: str) -> Iterator[SeedKey]:
        if self.configured is not None:
            yield parse_seed_key(self.configured, VARIABLE)
        for file in (self.file, self._earlier_file(digest)):
            if (key := _read_key(file)) is not None:
                yield key

    def write(self, value: int | None = None) -> SeedKey:
        """Write a key to its file, a random one where none is given; one that is there stays."""
        make_private_folder(self.folder)
        number = secrets.randbits(KEY_BITS) if value is None else value
        write_once(self.file, f"{number:0{MIN_HEX_DIGITS}x}")
        sync_folder(self.folder)
        return parse_seed_key(self.file.read_text(encoding="utf-8"), str(self.file))

    def set_aside(self) -> None:
        """Give the file of the current key the name of an earlier one: its versions need it."""
        if (key := _read_key(self.file)) is not None:
            self.file.replace(self._earlier_file(key.digest))
            sync_folder(self.folder)

    def _earlier_file(self, digest: str) -> Path:
        return self.folder / f"seed-{digest[:SHOWN_DIGEST_CHARS]}.key"


def seed_keys(settings: Settings) -> SeedKeys:
    """Return where the seed keys of a project may be."""
    folder = project_folder(settings.engine.folder, settings.project)
    return SeedKeys(secret_text(settings.seed_key), folder)


def _read_key(path: Path) -> SeedKey | None:
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    if os.name == "posix" and mode & OTHERS_MAY_READ:
        raise ConfigError(
            found=f"{path} is open to other users of this machine (mode {mode & 0o777:04o})",
            needed="a seed key that this user alone can read",
            next_step=f"chmod 600 {path}",
        )
    return parse_seed_key(text, str(path))
