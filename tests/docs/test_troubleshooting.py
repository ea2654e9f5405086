"""docs/troubleshooting.md quotes what Drover really says, and has every code of a refusal and of a blocked move."""

import re

from drover.events.reassignments import Blocker
from drover.events.refusals import RefusalCode
from tests.architecture.repository import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
FOLDERS = ("agents", "drover/cli", "drover/client", "drover/cluster", "drover/journal", "drover/reconcile", "events")
# Where a literal ends in one line and goes on in the next.
SEAM = re.compile(r'"\s*\n\s*f?"')


def first_cells(heading: str) -> list[str]:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")]
    return cells[2:]


def codes(heading: str) -> set[str]:
    return {code for cell in first_cells(heading) for code in re.findall(r"^`([a-z-]+)`$", cell)}


def test_every_code_of_a_refusal_has_a_cause_and_a_remedy() -> None:
    assert codes("A command is refused") == {code.value for code in RefusalCode}


def test_every_reason_of_a_blocked_move_has_a_cause_and_a_remedy() -> None:
    assert codes("A partition does not move") == {blocker.value for blocker in Blocker}


def test_what_the_page_quotes_is_what_the_code_says() -> None:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    source = "\n".join(SEAM.sub("", file.read_text(encoding="utf-8")) for file in files)
    quotes = [
        quote for line in PAGE.splitlines() if line.startswith('| "') for quote in re.findall(r'^\| "([^"]+)"', line)
    ]
    assert len(quotes) > 12
    assert [quote for quote in quotes if quote not in source] == []
