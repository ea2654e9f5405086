"""Code blocks of the documents are what their language says."""

import ast
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.docs.shell_blocks import ROOT, documents

READERS: Mapping[str, Callable[[str], object]] = {
    "json": json.loads,
    "python": ast.parse,
    "toml": tomllib.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
}
# Shell is parsed by test_commands.py, diffs by the test of their page; other languages and bash run elsewhere.
OTHERS = {"", "bash", "diff", "go", "ini", "java", "js", "mermaid", "nginx", "properties", "promql", "sh", "text"}
BLOCK = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", documents(), ids=str)
def test_every_code_block_can_be_read(document: Path) -> None:
    for _, language, text in BLOCK.findall((ROOT / document).read_text(encoding="utf-8")):
        if language in READERS:
            READERS[language](text)
        else:
            assert language in OTHERS
