"""The browser that the tests drive: who has none, or another one than was pinned, is told what to do."""

import json
from pathlib import Path

import pytest

from tests.web import browser


def test_a_browser_that_was_named_and_is_not_there_is_not_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(browser.VARIABLE, "/nowhere/chromium")
    with pytest.raises(browser.BrowserMissingError, match=r"names /nowhere/chromium, which cannot be run"):
        browser.find_browser()


def test_without_a_browser_and_npm_the_command_is_named_that_gets_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "cache_directory", lambda: tmp_path)
    with pytest.raises(browser.BrowserMissingError, match=r"`make browser`, which needs npm"):
        browser.find_browser()
    assert "browser:" in (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")


def test_a_package_with_another_hash_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lock = json.loads(browser.LOCK.read_text(encoding="utf-8"))
    npm = tmp_path / "npm"
    # npm pack --silent --pack-destination DIRECTORY PACKAGE
    npm.write_text(f'#!/bin/sh\necho forged > "$4/{lock["file"]}"\n')
    npm.chmod(0o755)
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "cache_directory", lambda: tmp_path / "cache")
    with pytest.raises(browser.BrowserMissingError, match=r"it is not used"):
        browser.find_browser()
    assert not list((tmp_path / "cache").rglob("chromium"))
