"""A time stamp of RFC 3161: an authority's word that a text existed at a time.

The request is made by `openssl ts` and sent by HTTP; the authority sees a SHA-256, no text. Whether
the answer is about that SHA-256 is compared here; the signature in it is checked by whoever holds
the authority's certificate:

    openssl ts -verify -data head.json -in head.json.tsr -CAfile authority.pem
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from ringfence.connector.errors import ConfigError, ServerError

TIMEOUT_SECONDS = 30.0
MAX_REPLY_BYTES = 1 << 20
QUERY_TYPE = "application/timestamp-query"
GRANTED = ("Status: Granted.", "Status: Granted with modifications.")
HASH_LINE = "Hash Algorithm: sha256"
DATA_LINE = re.compile(r"^ +[0-9a-f]{4} - ((?:[0-9a-f]{2}[ -]){1,16})", re.MULTILINE)


def fetch_time_stamp(authority: str, text: bytes) -> bytes:
    """Return the authority's answer about a text."""
    openssl = require_openssl()
    if not authority.startswith(("https://", "http://")):
        raise ConfigError(
            found=f"--time-stamp {authority}",
            needed="the http(s) address of a time-stamping authority (RFC 3161)",
            next_step="ringfence report --pack audit.zip --time-stamp https://…",
        )
    with tempfile.TemporaryDirectory() as folder:
        data, query, reply = (Path(folder) / name for name in ("data", "query", "reply"))
        data.write_bytes(text)
        _run(openssl, "-query", "-data", str(data), "-sha256", "-cert", "-out", str(query))
        answer = _post(authority, query.read_bytes())
        reply.write_bytes(answer)
        shown = _run(openssl, "-reply", "-in", str(reply), "-text")
    if not any(words in shown for words in GRANTED):
        raise ServerError(
            found=f"the authority {authority} gave no time stamp: {_status(shown)}",
            needed="a granted time stamp",
            next_step="try again, or ask another authority",
        )
    if HASH_LINE not in shown or message_data(shown) != hashlib.sha256(text).digest():
        raise ServerError(
            found=f"the time stamp of {authority} is about another message: its message data is "
            f"{message_data(shown).hex() or 'missing'}",
            needed="a time stamp of the SHA-256 that was sent",
            next_step="try again, or ask another authority",
        )
    return answer


def message_data(shown: str) -> bytes:
    """Return the hash that a time stamp is about, from what `openssl ts -reply -text` prints.

    >>> shown = "Message data:\\n    0000 - 01 ab-ff   ...\\n    0003 - 07   .\\n"
    >>> message_data(shown + "Serial number: 0x01")
    b'\\x01\\xab\\xff\\x07'
    """
    block = shown.partition("Message data:\n")[2].partition("Serial number:")[0]
    return bytes.fromhex("".join(DATA_LINE.findall(block)).replace("-", " "))


def require_openssl() -> str:
    """Return where the program openssl is."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise ConfigError(
            found="the program openssl is not installed",
            needed="openssl, which makes requests for time stamps",
            next_step="install openssl, or leave --time-stamp out",
        )
    return openssl


def _post(authority: str, query: bytes) -> bytes:
    request = urllib.request.Request(  # noqa: S310 - http and https alone, see above
        authority, query, {"Content-Type": QUERY_TYPE}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
            return bytes(answer.read(MAX_REPLY_BYTES))
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise ServerError(
            found=f"the authority {authority} does not answer: {reason}",
            needed="an answer to a request for a time stamp",
            next_step="try again, or write the pack without --time-stamp",
        ) from None


def _run(openssl: str, *arguments: str) -> str:
    command = [openssl, "ts", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise ServerError(
            found=f"openssl ts {arguments[0]} failed: {lines[-1]}",
            needed="an answer of a time-stamping authority (RFC 3161)",
            next_step="check the address of the authority",
        )
    return done.stdout


def _status(shown: str) -> str:
    return next((line for line in shown.splitlines() if line.startswith("Status:")), "no status")
