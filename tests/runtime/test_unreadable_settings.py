"""Settings that no program could use end in one clear line and never in a traceback."""

import os
from pathlib import Path

import pytest

from drover.errors import ConfigurationError
from drover.settings import settings_sources
from drover.settings.addresses import LONGEST_TIMEOUT_MS, parse_address
from drover.settings.settings_sources import load_settings

LOG = '[log]\nbootstrap = "kafka:9092"\n'
NO_UTF8 = "\udcff"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("DROVER_CONFIG", raising=False)


def written(tmp_path: Path, text: str, name: str = "drover.toml") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


def test_what_others_have_put_into_a_shared_cache_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever could foresee its first line could say where the commands of others go."""
    monkeypatch.setenv("DROVER_CONFIG_OWNER", "any")
    file = written(tmp_path, LOG)
    load_settings(file)
    (kept,) = (tmp_path / "cache").rglob("*.json")
    kept.write_bytes(kept.read_bytes().replace(b"kafka:9092", b"other:9092"))
    assert load_settings(file).log.bootstrap == "other:9092", "it is what is looked at first"
    monkeypatch.setattr("os.geteuid", lambda: kept.stat().st_uid + 1)
    monkeypatch.setattr(settings_sources, "TRUSTED_OWNERS", frozenset())
    assert load_settings(file).log.bootstrap == "kafka:9092"


def test_a_variable_with_bytes_that_are_not_utf8_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DROVER_WORKER__NAME", f"rack-{NO_UTF8}")
    with pytest.raises(ConfigurationError, match="variable DROVER_WORKER__NAME is not UTF-8"):
        load_settings(written(tmp_path, LOG))


def test_a_variable_of_somebody_else_may_hold_any_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DROVER_BANNER", NO_UTF8)
    assert load_settings(written(tmp_path, LOG)).log.bootstrap == "kafka:9092"


def test_a_flag_with_bytes_that_are_not_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a flag or a DROVER_"):
        load_settings(written(tmp_path, LOG), {"worker": {"name": NO_UTF8}})


def test_a_settings_file_may_have_any_name(tmp_path: Path) -> None:
    file = written(tmp_path, LOG, os.fsdecode(b"drover-\xff.toml"))
    assert load_settings(file) == load_settings(file)


def test_a_file_of_deeply_nested_lists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        load_settings(written(tmp_path, f"{LOG}x = {'[' * 5000}{']' * 5000}\n"))


@pytest.mark.parametrize("host", ["kafka..1", ".kafka", "kafka-1..", "k" * 64])
def test_a_host_with_an_empty_or_endless_part_is_refused_with_the_line(host: str, tmp_path: Path) -> None:
    """Python's resolver raises an error of its own kind for them, which nobody expected."""
    for text in (f'[log]\nbootstrap = "{host}:9092"\n', f'{LOG}[worker]\nlisten = "{host}:8150"\n'):
        with pytest.raises(ConfigurationError, match=r"line \d: .* must be host:port"):
            load_settings(written(tmp_path, text))


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "[::1]:8150", "0.0.0.0:80", "localhost:1", "host.example.:1"])
def test_an_address_in_any_usual_form_is_taken(listen: str) -> None:
    assert parse_address(listen)[1] == int(listen.rpartition(":")[2])


@pytest.mark.parametrize("section", ["worker", "zookeeper"])
def test_a_session_timeout_that_no_request_can_hold_is_refused(section: str, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=f"line 4: {section}: session_timeout_ms .* at most {LONGEST_TIMEOUT_MS}"
    ):
        load_settings(written(tmp_path, f"{LOG}[{section}]\nsession_timeout_ms = {LONGEST_TIMEOUT_MS + 1}\n"))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('[log.security]\nsecurity_protocol = "SSL"\nssl_cafile = "a\\u0000b"', "log.security.ssl_cafile"),
        ('[web]\nhosts = ["a", "a\\u0000b"]', "web.hosts"),
        ('[spark]\ndirectory = "a\\u0000b"', "spark.directory"),
    ],
    ids=["file", "list", "directory"],
)
def test_a_nul_that_toml_wrote_as_an_escape_is_refused_and_named(text: str, path: str, tmp_path: Path) -> None:
    """The operating system takes it in no name: Python raises an error of its own kind, wherever that is used."""
    with pytest.raises(ConfigurationError, match=f"{path} holds a NUL"):
        load_settings(written(tmp_path, f"{LOG}{text}\n"))
