"""Sphinx's configuration: the repository's Markdown as a site, built offline by `make docs`.

The source folder is the repository, so that a link works in the site and on a plain file view. The
pages of docs/reference are written from the code when a build begins; git does not know them.
Nothing is loaded from another host: Furo brings its style along, and fonts are the reader's own.
"""

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))  # for `reference`, which stands beside this file

from reference import write_pages

from ringfence import __version__

project = "ringfence"
author = "the ringfence authors"
release = version = __version__

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/*/*.md", "docs/reproduction/*/*.md"]
exclude_patterns = [
    ".*",
    "build",
    "dist",
    "tests",
    "benchmarks",
    "docs/reproduction/cache",
    "docs/reproduction/*/cache",
]
nitpicky = True
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]  # newer Cypher than Pygments knows

myst_heading_anchors = 4
myst_enable_extensions = ["fieldlist"]

html_theme = "furo"
html_title = f"ringfence {release}"
html_show_sourcelink = False
html_favicon = "../../jobs/dashboard/static/favicon.svg"
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
smartquotes = False  # --help stays what one can type
html_copy_source = False
html_permalinks_icon = "#"

FIRST_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>ringfence</title>
<meta http-equiv="refresh" content="0; url=docs/index.html">
<a href="docs/index.html">ringfence</a>
"""


def setup(app: Sphinx) -> None:
    """Write the pages made from the code first, and a first page that leads to the index last."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / "docs/reference"))
    app.connect("build-finished", _write_first_page)


def _write_first_page(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        (Path(app.outdir) / "index.html").write_text(FIRST_PAGE, encoding="utf-8")
