"""The documentation site: it builds without a warning, holds every page of the project, and can be searched."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.docs.shell_blocks import ROOT, documents

pytestmark = pytest.mark.story


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it."""
    where = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        ["make", "docs", f"SITE={where}"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return where


def test_every_page_of_the_project_is_in_the_site_and_in_its_search(site: Path) -> None:
    pages = {str(document.with_suffix("")) for document in documents()}
    assert {str(file.relative_to(site).with_suffix("")) for file in site.rglob("*.html")} >= pages
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    searched = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    assert set(searched["docnames"]) == pages


def test_the_navigation_is_the_index_of_the_readme(site: Path) -> None:
    page = (site / "docs" / "limits.html").read_text(encoding="utf-8")
    captions = ("Tutorial", "How-to", "Reference", "Explanation", "The project")
    places = [page.index(f'<span class="caption-text">{caption}</span>') for caption in captions]
    assert places == sorted(places)
    assert 'href="production.html"' in page


def test_the_start_page_is_the_readme(site: Path) -> None:
    assert 'href="README.html"' in (site / "index.html").read_text(encoding="utf-8")
    assert "docs/python.html" in (site / "README.html").read_text(encoding="utf-8")
