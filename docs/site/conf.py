"""The documentation site, which `make docs` builds: every Markdown page, in the order of the index in README.md."""

import re
from pathlib import Path

from sphinx.application import Sphinx

project = "Drover"
copyright = "The founders of Drover"  # noqa: A001 - Sphinx's name for it
html_title = "Drover"
html_theme = "furo"
# The start page is README.html.
html_extra_path = ["index.html"]
html_copy_source = False
html_show_sphinx = False

extensions = ["myst_parser", "sphinxcontrib.mermaid"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "events/*.md", "projections/*.md", "spark/*.md"]
exclude_patterns = [".*", "drover", "tests", "bench", "dist", "site"]
# GitHub's anchors of headings.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

_PAGE = re.compile(r"\]\(([\w./-]+)\.md(?:#[\w-]+)?\)")


def navigation(page: str, text: str) -> str:
    """Return the tables of contents for a page that is an index: one for each heading, with the pages it links to.

    Sphinx warns of a page that is in no table, and `make docs` fails at a warning.
    """
    index = text.partition("\n## More\n")[2] if page == root_doc else f"\n### \n{text}"
    _, *sections = index.split("\n### ")
    listed: set[str] = set()
    tables = []
    for section in sections:
        heading, _, links = section.partition("\n")
        pages = [link for link in dict.fromkeys(_PAGE.findall(links)) if link not in listed]
        listed.update(pages)
        entries = "\n".join(pages)
        caption = f":caption: {heading}\n" if heading else ""
        tables.append(f"```{{toctree}}\n:hidden:\n{caption}\n{entries}\n```\n")
    return "\n".join(tables)


def add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to the start page and to the list of decisions."""
    if page in {root_doc, "docs/decisions/README"}:
        source[0] += "\n" + navigation(page, source[0])


def setup(app: Sphinx) -> None:
    """Let Sphinx call `add_navigation` for each page that it reads."""
    assert (Path(app.srcdir) / f"{root_doc}.md").is_file(), "the pages are those of the repository"
    app.connect("source-read", add_navigation)
