"""Names of model versions as far as a page has room for them; the stored name stays."""

from __future__ import annotations

import re

STORED = re.compile(r"\b\d{8}T\d{12}-([0-9a-f]{8})\b")
"""When a version was trained, to the microsecond, and a digest of its weights."""


def short_versions(text: str) -> str:
    """Return a text with the versions in it by the digest alone, which commands understand too.

    >>> short_versions("run 7 by 20261119T042137444770-b01298c1"), short_versions("sample-1")
    ('run 7 by b01298c1', 'sample-1')
    """
    return STORED.sub(r"\1", text)
