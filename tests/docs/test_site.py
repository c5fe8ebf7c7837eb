"""The documentation builds as a site, without a warning, and loads nothing from elsewhere."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.connector.store.tables import metadata
from ringfence.jobs.cli.app import VERBS
from ringfence.jobs.dashboard.metrics import METRICS
from tests.packaging.distribution import copy_of_the_tracked_files

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)="([^"]+)"')
LOADED_BY_STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"]?)(https?:|//)")


def run_sphinx(source, into, conf):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    return subprocess.run(
        [*command, "-d", into / "kept", "-c", conf, source, into / "site"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built from a copy of what git knows."""
    folder = tmp_path_factory.mktemp("documentation")
    source = copy_of_the_tracked_files(folder / "source")
    done = run_sphinx(source, folder, source / "docs/site")
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "site"


@pytest.mark.slow
def test_the_site_has_every_page_and_loads_nothing_from_another_host(site):
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if "docs/reference" not in page.as_posix():
            assert page.relative_to(ROOT).with_suffix(".html").as_posix() in pages
    assert "index.html" in pages
    elsewhere = [
        (page, loaded)
        for page in sorted(pages)
        for loaded in LOADED.findall((site / page).read_text("utf-8"))
        if re.match(r"\w+:|//", loaded) and not loaded.startswith("data:")
    ]
    assert elsewhere == []
    styles = [*site.rglob("*.css"), *site.rglob("*.js")]
    assert [path for path in styles if LOADED_BY_STYLE.search(path.read_text("utf-8"))] == []
    for page in ("docs/tutorial.html", "docs/operations.html", "docs/reference/sql.html"):
        assert len((site / page).read_text("utf-8")) > 10_000


@pytest.mark.slow
def test_the_reference_has_every_verb_metric_and_table(site):
    def text(name):
        return (site / f"docs/reference/{name}.html").read_text("utf-8")

    assert [verb for verb in VERBS if f'id="ringfence-{verb}"' not in text("command-line")] == []
    assert [name for name in METRICS if f"ringfence_{name}" not in text("metrics")] == []
    assert [name for name in metadata.tables if f"<h3>{name}" not in text("sql")] == []
    for name in ("ringfence_run", "ringfence_coverage"):
        assert f"<h3>{name}" in text("sql")
    assert "ringfence.models.aps" in text("python")
    assert "ringfence_evaluated" in text("graph")


@pytest.mark.slow
def test_links_that_lead_nowhere_fail_the_build(tmp_path):
    """The negative control."""
    page = "[gone](gone.md) [part](other.md#no-such-part)"
    source = tmp_path / "source"
    source.mkdir()
    (source / "index.md").write_text(f"# Index\n\n{page}\n\n```{{toctree}}\nother\n```\n", "utf-8")
    (source / "other.md").write_text("# Other\n", "utf-8")
    text = (ROOT / "docs/site/conf.py").read_text("utf-8")
    kept = re.findall(r"^(?:extensions|myst_\w+|nitpicky) = .+$", text, re.MULTILINE)
    assert len(kept) >= 3
    (source / "conf.py").write_text("\n".join(kept), "utf-8")
    done = run_sphinx(source, tmp_path, source)
    assert done.returncode != 0
    assert "gone.md" in done.stderr
    assert "no-such-part" in done.stderr


def test_the_figures_of_the_pages_are_what_benchmarks_and_code_say():
    module = runpy.run_path(str(ROOT / "docs/site/figures.py"))
    for name, figures in module["PAGES"].items():
        page = (ROOT / "docs" / name).read_text("utf-8")
        assert figures().count("\n") >= 5
        assert page == module["with_figures"](page, figures()), f"run: make docs ({name})"
