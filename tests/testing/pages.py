"""The Python programs of the documents, each with its name in its first line."""

import re

from tests.architecture.repository import ROOT

_FILE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)


def programs(page: str) -> dict[str, str]:
    """Return the files that a page in docs/ shows, by name."""
    return {
        name: f"# {name}\n{text}" for name, text in _FILE.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    }
