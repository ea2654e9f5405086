"""The settings file in the README is one that Drover reads, and nothing in it is made up."""

import re
from pathlib import Path

import pytest

from drover.settings.sources import load_settings
from tests.docs.shell_blocks import ROOT


@pytest.fixture
def example(tmp_path: Path) -> Path:
    (block,) = re.findall(
        r"^```toml\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    file = tmp_path / "drover.toml"
    file.write_text(block, encoding="utf-8")
    return file


def test_the_settings_file_in_the_readme_is_read_with_the_password_from_the_environment(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (password,) = re.findall(r"DROVER_[A-Z_]*PASSWORD", example.read_text(encoding="utf-8"))
    value = "from the environment"
    monkeypatch.setenv(password, value)
    settings = load_settings(example)
    assert settings.clusters["prod"].security.sasl_plain_password == value
    assert settings.clusters["prod"].limits.max_moves_per_broker == 5
