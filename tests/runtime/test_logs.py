"""How a worker logs: JSON where no terminal is, and nothing that acts on one."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import structlog
from aiohttp.http_exceptions import BadStatusLine

from drover.service.logs import configure_logging

Said = Callable[[str], str]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[Said]:
    """Log a hostile warning in a format, and return what was written."""

    def log(log_format: str) -> str:
        written = io.StringIO()
        monkeypatch.setattr("sys.stderr", written)
        configure_logging(log_format)
        structlog.get_logger("drover.test").warning("refused", reason="\x1b[2Jgone\u202etxt\nnext", paths=["\x9b1m"])
        return written.getvalue()

    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield log
    root.handlers[:], root.level = before
    structlog.reset_defaults()


def test_it_is_json_where_no_terminal_is(said: Said) -> None:
    line = json.loads(said("auto"))
    assert list(line)[:3] == ["timestamp", "level", "event"]
    assert line["reason"] == "\x1b[2Jgone\u202etxt\nnext"


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_nothing_that_is_quoted_acts_on_a_terminal(said: Said, log_format: str) -> None:
    written = said(log_format)
    assert written.count("\n") == 1
    assert not any(character in written for character in "\x1b\x9b\u202e")
    assert "gone" in written


def test_a_request_that_is_not_http_is_not_logged(said: Said) -> None:
    def logged(error: Exception) -> str:
        written = io.StringIO()
        for handler in logging.getLogger().handlers:
            assert isinstance(handler, logging.StreamHandler)
            handler.setStream(written)
        logging.getLogger("aiohttp.server").error("Error handling request", exc_info=error)
        return written.getvalue()

    said("json")
    assert logged(BadStatusLine("nonsense")) == ""
    assert "a fault of ours" in logged(ValueError("a fault of ours"))


def test_a_process_without_standard_error_runs_without_a_log() -> None:
    program = """
import os, structlog
from drover.service.logs import configure_logging
configure_logging()
structlog.get_logger("drover.test").warning("refused")
os.write(1, b"goes on")
"""
    command = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, program]
    ended = subprocess.run(command, stdout=subprocess.PIPE, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (0, b"goes on")
