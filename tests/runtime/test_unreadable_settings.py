"""Settings that no program could use end in one clear line and never in a traceback."""

import os
import re
from pathlib import Path

import pytest

from drover.errors import ConfigurationError
from drover.settings.addresses import LONGEST_TIMEOUT_MS, parse_address
from drover.settings.sources import load_settings

LOG = '[log]\nbootstrap = "kafka:9092"\n'
NO_UTF8 = "\udcff"


@pytest.fixture(autouse=True)
def no_named_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DROVER_CONFIG", raising=False)


def written(tmp_path: Path, text: str, name: str = "drover.toml") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


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


@pytest.mark.parametrize("deep", [f"x = {'[' * 5000}{']' * 5000}", f"{'x.' * 5000}x = 1"], ids=["lists", "tables"])
def test_a_file_of_deeply_nested_values_is_refused(deep: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        load_settings(written(tmp_path, f"{LOG}{deep}\n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[worker]\nsession_timeout_ms = '20000'", "line 4: worker.session_timeout_ms must be an integer"),
        ("[worker]\nlog_format = 'xml'", "line 4: worker.log_format must be one of auto, json, text"),
        ("[worker]\nname = 7", "line 4: worker.name must be text, in quotes"),
        ("[planning]\ndisk_limit = 'most'", "line 4: planning.disk_limit must be a number"),
        ("[zookeeper]\nproject = 1", "line 4: zookeeper.project must be true or false"),
        ("[web]\nhosts = 'a'", "line 4: web.hosts must be a list of texts"),
        ("[web]\nhosts = ['a', 1]", "line 4: web.hosts must be a list of texts"),
        ("[clusters.x]\nbootstrap = 'a:1'\nstepping = 'jump'", "line 5: clusters.x.stepping must be one of grow, swap"),
        ("[clusters.x]\nbootstrap = 'a:1'\nhealing = true", "line 5: clusters.x.healing must be a section"),
        ("[clusters]\nx = 'a:1'", "line 4: clusters.x must be a section"),
        ("[spark.options]\nspark.driver.memory = '2g'", "spark.options.spark must be text, in quotes"),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_it_must_be(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        load_settings(written(tmp_path, f"{LOG}{text}\n"))


def test_all_problems_are_named_and_no_value_is_shown(tmp_path: Path) -> None:
    """A password may stand in the place of something else."""
    text = f"{LOG}[worker]\nsession_timeout_ms = 'hunter2'\n[zookeeper]\nrot = 'hunter2'\npassword = 1234567\n"
    with pytest.raises(ConfigurationError) as refused:
        load_settings(written(tmp_path, text))
    said = str(refused.value)
    for setting in ("worker.session_timeout_ms must be", "zookeeper.rot is no setting", "zookeeper.password must be"):
        assert setting in said
    assert "hunter2" not in said
    assert "1234567" not in said


def test_a_word_with_bytes_that_are_not_utf8_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DROVER_WORKER__LOG_FORMAT", NO_UTF8)
    with pytest.raises(ConfigurationError, match="variable DROVER_WORKER__LOG_FORMAT is not UTF-8"):
        load_settings(written(tmp_path, LOG))


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
