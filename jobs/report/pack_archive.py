"""The archive of an audit pack, written member by member: nothing is built in memory.

Equal content gives equal bytes: members carry no time of writing. The SHA-256 of each member is
computed as it is written; `SHA256SUMS` has them in the form that `sha256sum -c` reads.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ringfence.connector.files import PRIVATE, open_private

NO_TIME = (1980, 1, 1, 0, 0, 0)  # of every member: the earliest that the format can say
SUMS_FILE = "SHA256SUMS"
COMPRESSED = (".gz", ".parquet")
BYTES_PER_COPY = 1 << 20


class PackArchive:
    """A zip file that is open for writing; `sums` has the SHA-256 of the members so far."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.sums: dict[str, str] = {}

    @contextmanager
    def member(self, name: str) -> Iterator[IO[bytes]]:
        """Open a member for writing; one at a time."""
        entry = zipfile.ZipInfo(name, NO_TIME)
        stored = name.endswith(COMPRESSED)
        entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        entry.external_attr = PRIVATE << 16
        entry.create_system = 3  # as on every system: Unix
        with self._archive.open(entry, "w", force_zip64=True) as raw:
            hashing: Any = _HashingWriter(raw)
            yield hashing
        self.sums[name] = hashing.digest.hexdigest()

    def add_text(self, name: str, text: str) -> None:
        """Write a member that is small enough to be held at once."""
        self.add_bytes(name, text.encode())

    def add_bytes(self, name: str, content: bytes) -> None:
        """Write a member of some bytes."""
        with self.member(name) as file:
            file.write(content)

    @contextmanager
    def gzipped(self, name: str) -> Iterator[IO[bytes]]:
        """Open a gzipped member for writing."""
        with (
            self.member(name) as file,
            gzip.GzipFile("", "wb", 6, file, mtime=0) as zipped,
        ):
            yield zipped  # type: ignore[misc]

    def add_file(self, name: str, path: Path) -> None:
        """Copy a file into a member."""
        with self.member(name) as file, path.open("rb") as source:
            shutil.copyfileobj(source, file, BYTES_PER_COPY)

    def sums_text(self) -> str:
        """Return what `SHA256SUMS` says of the members so far."""
        return "".join(f"{digest}  {name}\n" for name, digest in sorted(self.sums.items()))


class _HashingWriter:
    """A file that hashes what goes through it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.digest = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


@contextmanager
def new_archive(path: Path) -> Iterator[PackArchive]:
    """Open a new archive; a file of that name is replaced once the new one is whole."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with (
            open_private(partial, "wb") as file,
            zipfile.ZipFile(file, "w", compresslevel=9) as archive,
        ):
            yield PackArchive(archive)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
