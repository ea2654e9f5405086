"""Links between the documents lead somewhere, also to headings; and no document names what is not public."""

import re
from pathlib import Path

import pytest

from tests.docs.shell_blocks import ROOT, documents

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", documents(), ids=str)
def test_every_link_leads_somewhere(document: Path) -> None:
    for link in LINK.findall((ROOT / document).read_text(encoding="utf-8")):
        if "://" in link:
            continue
        place, _, anchor = link.partition("#")
        file = (ROOT / document).parent / place if place else ROOT / document
        assert file.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(file), f"{link} names no heading"


@pytest.mark.parametrize("document", documents(), ids=str)
def test_every_source_file_that_a_document_names_exists(document: Path) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = re.findall(
        r"(?<!/etc/)\b((?:agents|drover|events|projections|spark|tests|docs|bench)/[\w./-]+\.(?:py|md|json|toml))\b",
        text,
    )
    # Some are made as the document says. Files of later issues may be named in a sentence that says so.
    made = set(re.findall(r"^`([\w./-]+)`:\n\n```python$", text, flags=re.MULTILINE))
    missing = [name for name in named if name not in made and not (ROOT / name).exists()]
    assert [name for name in missing if "not built" not in _sentence(text, name)] == []


def _sentence(text: str, name: str) -> str:
    place = text.index(name)
    return text[max(0, place - 200) : place + 200]
