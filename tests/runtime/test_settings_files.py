"""Settings files as other systems write and mount them."""

import os
from pathlib import Path

import pytest

from drover.errors import ConfigurationError
from drover.settings import trusted_files
from drover.settings.sources import load_settings
from tests.runtime.test_settings import FILE


@pytest.fixture(autouse=True)
def no_named_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DROVER_CONFIG", raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "drover.toml"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_that_an_editor_of_windows_wrote_is_read(encoding: str, tmp_path: Path) -> None:
    """With a byte order mark, in UTF-16, and with other line ends."""
    file = tmp_path / "drover.toml"
    file.write_bytes(FILE.replace("\n", "\r\n").encode(encoding))
    assert sorted(load_settings(file).clusters) == ["eu.west", "prod"]
    file.write_bytes(FILE.replace('"prod:9092"', "7").replace("\n", "\r\n").encode(encoding))
    with pytest.raises(ConfigurationError, match=r"line 6: clusters\.prod\.bootstrap"):
        load_settings(file)


def test_a_file_on_a_mount_that_keeps_no_modes_has_a_way_round(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.chmod(0o777)
    with pytest.raises(ConfigurationError, match=r"where chmod has no effect, .* set DROVER_CONFIG_MODE=any"):
        load_settings(file)
    monkeypatch.setenv("DROVER_CONFIG_MODE", "any")
    assert load_settings(file).log.bootstrap == "kafka:9092"
    owner = file.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    monkeypatch.setattr(trusted_files, "TRUSTED_OWNERS", frozenset())
    with pytest.raises(ConfigurationError, match="DROVER_CONFIG_OWNER"):
        load_settings(file)


def test_a_file_that_is_written_here_is_trusted_whatever_the_umask_is(tmp_path: Path) -> None:
    """Users with a group of their own have 002, by which a group may write what is new."""
    before = os.umask(0o002)
    try:
        file = tmp_path / "drover.toml"
        for text in ("first", "second"):
            trusted_files.write_own(file, text)
            assert trusted_files.read_trusted(file, "the file") == text.encode()
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == [file]
