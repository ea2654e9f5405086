"""A download shows itself on stderr: one plain line where nobody watches a bar."""

import pytest

from drover.jars.progress import stderr_progress


def test_outside_a_terminal_a_download_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with stderr_progress("kafka: 47 jars", 46_000_000) as advance:
        advance(46_000_000)
    captured = capsys.readouterr()
    assert captured.err == "Downloading kafka: 47 jars (46 MB)\n"
    assert captured.out == ""


def test_in_a_terminal_a_download_is_a_bar_that_fills(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with stderr_progress("kafka: 47 jars", 1000) as advance:
        advance(400)
        advance(600)
    captured = capsys.readouterr()
    assert "1.0/1.0 kB" in captured.err
    assert captured.out == ""
